"""Messages that mislead, and checks that stop too early."""

import json
import re
import subprocess
import sys

import click
import numpy as np
import pytest

from dissensus import Annotations, DataError, check, report
from dissensus.cli import VERBS, cli
from dissensus.deep.nn.reading import read_input_index
from dissensus.errors import install_command

from ..support import run

INCOMPLETE = "task,worker,label\na,x,1\na,y,\nb,x,1\nb,,0\nc,x,0\nc,y,1\nc,z,1\n"
WITHOUT = "import sys; sys.modules.update(dict.fromkeys({!r})); from dissensus.cli import main; main({!r})"  # noqa: E501


def test_a_check_reports_missing_values_and_goes_on(tmp_path):
    (tmp_path / "a.csv").write_text(INCOMPLETE)
    done = run("check", "a.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {one["code"]: one for one in json.loads(done.stdout)["findings"]}
    assert found["incomplete"]["count"] == 2
    assert "line 3: no label" in found["incomplete"]["sentence"]
    assert found["incomplete"]["severity"] == "serious"
    assert "two-labels" in found or "few-annotators" in found or len(found) > 1
    assert run("check", "a.csv", "--strict", cwd=tmp_path).returncode == 1
    assert "incomplete" in {one.code for one in check(tmp_path / "a.csv").serious}
    dropped = run("check", "a.csv", "--json", "--missing", "drop", cwd=tmp_path)
    assert b"incomplete" not in dropped.stdout
    (tmp_path / "a.csv").write_text("nothing,of,that\n1,2,3\n")
    assert run("check", "a.csv", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    "command",
    [
        "evaluate bad.csv --truth good.csv",
        "evaluate good.csv --truth bad.csv",
        "evaluate good.csv --annotations bad.csv",
        "aggregate bad.csv",
        "aggregate long.csv --gold bad.csv",
        "agree bad.csv",
        "next bad.csv",
        "watch bad.csv -o l.csv --once",
        "compare long.csv --truth bad.csv",
        "compare bad.csv",
    ],
)
def test_advice_names_only_options_that_there_are(command, tmp_path):
    (tmp_path / "bad.csv").write_text("photo,person,choice_of\n1,2,3\n2,3,4\n")
    (tmp_path / "good.csv").write_text("item,label\na,1\nb,0\n")
    (tmp_path / "long.csv").write_text("task,worker,label\na,x,1\nb,y,0\na,y,1\n")
    done = run(*command.split(), cwd=tmp_path)
    assert done.returncode == 2
    verb = cli.get_command(click.Context(cli), command.split()[0])
    known = {flag for parameter in verb.params for flag in parameter.opts}
    advised = set(re.findall(r"(?<![\w-])--[a-z-]+", done.stderr.decode())) - {"--help"}
    assert advised <= known, done.stderr


def test_rows_may_be_named_by_an_array_called_task(tmp_path):
    names = np.array([f"t{n}" for n in range(4)])
    np.savez(tmp_path / "x.npz", x=np.arange(8.0).reshape(4, 2), task=names[::-1])
    index = read_input_index(tmp_path / "x.npz", Annotations.from_columns(names, "abcd", "0101").items)  # noqa: E501  # fmt: skip
    assert index.content["t3"] == 0
    np.savez(tmp_path / "y.npz", x=np.zeros((4, 2)))
    many = Annotations.from_columns([7, 8, 9, 10], "abcd", "0101").items
    with pytest.raises(DataError, match="4 rows for items such as 7; name the rows in an array"):
        read_input_index(tmp_path / "y.npz", many)


def test_annotators_who_do_not_agree_are_not_called_agreeing():
    found = report(Annotations.from_columns("aaa", "xyz", "101"), "majority")
    shown = " ".join([*found.sentences, *(one.sentence for one in found.actions)])
    assert "alpha" in shown
    assert "annotators agree" not in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["meta", "fit", "--source", "x.npz", "-o", "m"],
        ["meta", "adapt", "a.csv", "--load", "m", "--inputs", "x.npz", "-o", "p.csv"],
        ["recover", "fit", "a.csv", "--inputs", "x.npz", "-o", "m"],
        ["recover", "evaluate", "a.csv", "--inputs", "x.npz"],
        ["tendency", "fit", "a.csv", "--inputs", "x.npz", "-o", "m"],
        ["train", ".", "--labels", "a.csv"],
        ["identify", "a.csv", "-s", "waum"],
    ],
    ids=" ".join,
)
def test_a_core_install_says_what_to_install(arguments, tmp_path):
    (tmp_path / "a.csv").write_text(INCOMPLETE.replace("a,y,\n", "").replace("b,,0\n", ""))
    np.savez(tmp_path / "x.npz", x=np.zeros((8, 3)), y=np.arange(8) % 2)
    gone = ["torch", "safetensors", "sklearn", "lightning_fabric", "transformers"]
    command = [sys.executable, "-c", WITHOUT.format(gone, arguments)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2, done.stderr.decode()
    assert install_command("deep").encode() in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_every_verb_has_a_name_of_its_own():
    assert len(set(VERBS)) == len(VERBS)
