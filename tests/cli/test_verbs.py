"""Commands that follow from signatures: of functions here, and of verbs of the library."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import click
import pytest
from annotated_types import Ge, Interval
from click.testing import CliRunner

import dissensus as ds
from dissensus.cli.option_types import DECLARED
from dissensus.cli.verb import ANSWERS, READING, Option, Options, command, command_of, computed
from dissensus.cli.verbs import VERBS, Line

ROWS = "item,annotator,label\na,x,cat\na,y,cat\nb,x,dog\nb,y,cat\nc,x,dog\nc,y,dog\n"


@dataclass(frozen=True, kw_only=True)
class Size(Options):
    """What belongs together."""

    n_items: int = 20
    folder: str | None = computed("here")


@command(strategy="the best", rest=("missing", "seed"))
def measure(
    path: Annotated[str, "TABLE"],
    names: tuple[str, ...] = (),
    *,
    output: str,
    strategy: str | None = None,
    size: Size,
    share_of: Annotated[float, Interval(ge=0, le=1)] = 0.5,
    most: Annotated[int, Ge(2)] | None = None,
    colour: Literal["red", "blue"] = "red",
    quietly: bool = False,
    words: tuple[str, ...] = (),
    as_json: bool = False,
    **rest: Any,
) -> None:
    """Measure something.

    Parameters
    ----------
    share_of
        The share.
    """
    got.append(locals())


got: list[dict[str, Any]] = []


def called(*words: str) -> dict[str, Any]:
    got.clear()
    done = CliRunner().invoke(measure, [*words, "-o", "out.csv"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return got[0]


def test_parameters_are_arguments_and_options():
    values = called(
        "a.csv", "b", "c", "--n-items", "3", "--share-of", "0.25", "--quietly", "--json"
    )
    assert (values["path"], values["names"]) == ("a.csv", ("b", "c"))
    assert values["size"] == Size(n_items=3)
    assert (values["share_of"], values["quietly"], values["as_json"]) == (0.25, True, True)
    assert values["rest"] == {"missing": "error", "seed": 0}
    assert called("a.csv", "--words", "p", "--words", "q")["words"] == ("p", "q")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--share-of", "2"), "0<=x<=1"),
        (("--most", "1"), "x>=2"),
        (("--colour", "green"), "'red', 'blue'"),
        (("--n-items", "0"), "1<=x"),
        ((), "Missing option '--output'"),
    ],
)
def test_values_are_checked(words, problem):
    out = ("-o", "out.csv") if words else ()
    done = CliRunner().invoke(measure, ["a.csv", *words, *out])
    assert done.exit_code == 2
    assert problem in done.output


def test_help_has_what_the_table_and_the_docstring_say():
    text = CliRunner().invoke(measure, ["--help"]).output
    assert "Usage: measure [OPTIONS] TABLE [NAMES]..." in text
    assert "Parameters" not in text
    assert "The share.  [default: 0.5; 0<=x<=1]" in " ".join(text.split()).replace(". [", ".  [")
    assert "[default: (the best)]" in text
    assert "[default: (here)]" in text
    for name in ("output", "strategy", "n_items", "missing", "seed"):
        option = next(one for one in measure.params if one.name == name)
        assert option.help == DECLARED[name][1]["help"]


def test_options_that_all_commands_have_stand_last():
    names = [option.name for option in measure.params if isinstance(option, Option)]
    assert names[-3:] == ["as_json", "seed", "force"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(ROWS)
    return path


AGREE = Line(
    "",
    "Measure how much annotators agree.",
    verb="agree",
    work="resampling",
    reading=(*ANSWERS, *READING),
    views=("output",),
    words={"measures": "percent, alpha, fleiss, ac1"},
    names={"by": "per", "resamples": "repeats"},
)


def run(line, *words):
    return CliRunner().invoke(command_of("verb", line), list(map(str, words)))


def test_a_verb_of_the_library_is_a_line(table):
    words = (table, "--measure", "alpha", "--repeats", "50", "--per", "annotator", "--seed", "3")
    done = run(AGREE, *words, "--json")
    assert done.exit_code == 0, done.output
    expected = ds.agree(ds.read(table), ["alpha"], resamples=50, by="annotator", seed=3)
    assert json.loads(done.output) == json.loads(json.dumps(expected.as_dict()))


def test_a_line_has_the_options_and_defaults_of_its_signature(table):
    made = command_of("agree", AGREE)
    names = {parameter.name for parameter in made.params}
    assert {"path", "measures", "per", "repeats", "weights", "missing", "kind", "seed"} <= names
    assert "progress" not in names
    done = run(AGREE, table, "--json")
    assert json.loads(done.stdout) == json.loads(json.dumps(ds.agree(ds.read(table)).as_dict()))
    helps = {one.name: one.help for one in made.params if isinstance(one, click.Option)}
    assert helps["multiple"] == DECLARED["multiple"][1]["help"]


def test_a_line_reads_known_labels_writes_and_shows(table, tmp_path):
    (tmp_path / "gold.csv").write_text("item,label\na,cat\nb,dog\nq,cat\n")
    line = Line("", "Check.", verb="check", reading=READING, views=("output",))
    words = (table, "--gold", tmp_path / "gold.csv")
    done = run(line, *words, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["n_gold"] == 3
    assert "1 of 3 items are not in the data: q" in done.stderr
    shown = run(line, *words, "-o", tmp_path / "findings.csv")
    assert "3 items" in " ".join(shown.stdout.split())
    assert (tmp_path / "findings.csv").read_text().startswith("severity,code,count,sentence")
    refused = run(line, *words, "-o", table)
    assert "--force replaces it" in str(refused.exception)


def test_every_verb_says_what_it_is_for():
    for name, line in VERBS.items():
        assert line.help.endswith("."), name
        assert bool(line.home) != bool(line.verb), name
