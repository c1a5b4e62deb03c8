"""Files that would be lost: an input that is the output, answers that somebody else wrote."""

import json

import polars as pl
import pytest

from ..support import run

TABLE = "task,worker,label\n" + "".join(
    f"{item},{who},{'cat' if item in 'abc' else 'dog'}\n" for item in "abcdef" for who in "xyz"
)
GOLD = "item,label\na,cat\nd,dog\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "gold.csv").write_text(GOLD)
    (tmp_path / "link.csv").symlink_to("a.csv")
    return tmp_path


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        "aggregate a.csv -s majority -o a.csv",
        "aggregate a.csv -s majority -o link.csv",
        "aggregate a.csv -s majority -o ./a.csv",
        "aggregate a.csv -s majority --gold gold.csv -o gold.csv",
        "aggregate ./*.csv -s majority -o a.csv",
        "watch a.csv -o a.csv --once",
        "convert a.csv a.csv",
        "convert link.csv a.csv",
        "convert a.csv gold.csv --gold gold.csv",
        "agree a.csv -o a.csv",
        "report a.csv -o a.csv",
        "identify a.csv -o a.csv",
        "next a.csv -o a.csv",
        "recover evaluate a.csv --inputs gold.csv --reliability gold.csv",
    ],
)
def test_an_input_is_not_written_over(command, folder):
    before = content(folder)
    done = run(*command.split(), cwd=folder)
    assert done.returncode == 2, done.stderr
    assert b"is read by this command, too; --force replaces it\n" in done.stderr
    assert content(folder) == before


def test_a_part_of_the_input_is_not_written_over(folder):
    (folder / "in").mkdir()
    pl.read_csv(folder / "a.csv").write_parquet(folder / "in" / "1.parquet")
    before = (folder / "in" / "1.parquet").read_bytes()
    for path in ("in", "in/*.parquet"):
        done = run("aggregate", path, "-s", "majority", "-o", "in/1.parquet", cwd=folder)
        assert done.returncode == 2, done.stderr
        assert (folder / "in" / "1.parquet").read_bytes() == before


def test_force_writes_over_an_input(folder):
    done = run("aggregate", "a.csv", "-s", "majority", "-o", "a.csv", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "a.csv").read_text().startswith("item,label,confidence")


@pytest.mark.parametrize(
    ("target", "options"),
    [("out.csv", ()), ("out.parquet", ()), ("out.json", ()), ("out", ()),
     ("out.json", ("--to", "label-studio")), ("out.csv", ("--to", "wide"))],
)  # fmt: skip
def test_a_conversion_replaces_its_own_file_and_says_so(target, options, folder):
    assert run("convert", "a.csv", target, *options, cwd=folder).returncode == 0
    again = run("convert", "a.csv", target, *options, cwd=folder)
    assert again.returncode == 0
    assert b"replaced" not in again.stderr  # nothing changed
    (folder / "a.csv").write_text(TABLE + "g,x,cat\n")
    more = run("convert", "a.csv", target, *options, cwd=folder)
    assert more.returncode == 0, more.stderr
    assert b"replaced: out" in more.stderr


@pytest.mark.parametrize("body", ["dear diary\n", "item,annotator,label,why\na,x,cat,it is\n", ""])
def test_a_conversion_refuses_a_file_of_others(body, folder):
    (folder / "mine.csv").write_text(body)
    done = run("convert", "a.csv", "mine.csv", cwd=folder)
    assert done.returncode == 2
    assert b"mine.csv: there already, and not written by this command; --force" in done.stderr
    assert (folder / "mine.csv").read_text() == body
    assert run("convert", "a.csv", "mine.csv", "--force", cwd=folder).returncode == 0


def test_columns_that_are_not_read_are_reported(folder):
    rows = TABLE.splitlines()
    (folder / "b.csv").write_text("\n".join([rows[0] + ",comment", *(f"{r},hm" for r in rows[1:])]))
    done = run("convert", "b.csv", "out.csv", "--json", cwd=folder)
    lost = json.loads(done.stdout)["lost"]
    assert lost == ["columns not read: comment; --columns comment=comment carries one along"]
    done = run("convert", "b.csv", "all.csv", "--columns", "comment=comment", cwd=folder)
    assert b"columns" not in done.stderr
    assert "comment" in (folder / "all.csv").read_text().splitlines()[0]


def test_a_simulation_replaces_a_simulation_and_nothing_else(folder):
    assert run("simulate", "--folder", "s", cwd=folder).returncode == 0
    again = run("simulate", "--folder", "s", "--seed", 1, cwd=folder)
    assert again.returncode == 0
    assert b"replaced: s/answers.json, s/metadata.json" in again.stderr
    (folder / "data").mkdir()
    (folder / "data" / "answers.json").write_text('{"0": {"0": 1}}')
    refused = run("simulate", "--folder", "data", cwd=folder)
    assert refused.returncode == 2
    assert b"data/answers.json: there already" in refused.stderr
    assert (folder / "data" / "answers.json").read_text() == '{"0": {"0": 1}}'
    (folder / "data" / "metadata.json").write_text('{"name": "labelme", "n_classes": 2}')
    assert run("simulate", "--folder", "data", cwd=folder).returncode == 2
    assert run("simulate", "--folder", "data", "--force", cwd=folder).returncode == 0


def test_the_demo_replaces_the_demo_and_nothing_else(folder):
    quick = ("demo", "-s", "majority", "--json", "--folder")
    (folder / "mine").mkdir()
    (folder / "mine" / "labels.csv").write_text("mine")
    assert run(*quick, "mine", cwd=folder).returncode == 2
    (folder / "mine" / "answers.csv").write_text(TABLE)
    assert run(*quick, "mine", cwd=folder).returncode == 2
    assert (folder / "mine" / "answers.csv").read_text() == TABLE
    assert run(*quick, "demo", cwd=folder).returncode == 0
    again = run(*quick, "demo", cwd=folder)
    assert again.returncode == 0
    assert b"replaced: demo/answers.csv" in again.stderr
