"""What every registered method promises, and that the command runs it under its name."""

import pytest

from dissensus import aggregate, aggregators
from dissensus.conformance import *  # noqa: F403
from dissensus.conformance import abstains, relation

from ..support import run

each_method = pytest.mark.parametrize("name", list(aggregators))


@each_method
def test_the_command_runs_it(name, tmp_path):
    (tmp_path / "answers.csv").write_text("task,worker,label\na,x,0\na,y,0\nb,x,1\nb,y,1\n")
    done = run("aggregate", "answers.csv", "-s", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = aggregate(
        relation([("a", "x", "0"), ("a", "y", "0"), ("b", "x", "1"), ("b", "y", "1")]), name
    )
    lines = [*result.notes, " ".join(result.unidentifiable)]  # two annotators show nothing
    assert done.stderr.decode() == "".join(f"{sentence}\n" for sentence in lines)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "item,label,confidence,p:0,p:1"
    labels = [line.split(",")[:2] for line in lines[1:]]
    undecided = abstains(name) and labels == [["a", ""], ["b", ""]]
    assert labels == [["a", "0"], ["b", "1"]] or undecided


@each_method
def test_its_class_is_called_like_it(name):
    assert aggregators.find(name).__name__ == name.title().replace("-", "")
