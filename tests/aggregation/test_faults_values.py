"""Settings, codes and repeats that would give a wrong result without a word."""

import json

import numpy as np
import pytest

from dissensus import (
    Annotations,
    DataError,
    MethodError,
    Numbers,
    aggregate,
    aggregators,
    estimators,
    read,
)
from dissensus.params import describe_fields

from ..support import relation, rows_of, run

ROWS = [(i, w, "xyz"[(i * w + i) % 3]) for i in range(8) for w in range(5)]
ODD = [1e-320, 1e-30, 0.0, 1e30, 1e308, -1e30, 10**20, -1]


def outcome(annotations, spec):
    """Return a result, or nothing where it is refused in one line."""
    try:
        return aggregate(annotations, spec)
    except MethodError as problem:
        return None if "\n" not in str(problem) else pytest.fail(str(problem))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", list(aggregators))
def test_an_odd_setting_gives_probabilities_or_one_line(name):
    annotations = relation(ROWS[:25])
    if aggregators.find(name).max_classes == 2:
        annotations = relation([(i, w, "xy"[(i + w) % 2]) for i, w, _ in ROWS[:25]])
    for field in describe_fields(aggregators.find(name)):
        bases = {option.base for option in field.options}
        for value in ODD:
            if float in bases or (int in bases and isinstance(value, int)):
                result = outcome(annotations, f"{name}[{field.name}={value!r}]")
                if result is not None:
                    np.testing.assert_allclose(result.posterior.sum(axis=1), 1, atol=1e-6)
                    assert (result.posterior >= 0).all(), (field.name, value)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("log-odds[smoothing=1e-320]", "smoothing = 1e-320, but its size must be between"),
        ("weighted[default=1e308]", "default = 1e+308, but its size must be between"),
        ("plantnet[gamma=1e308]", "gamma = 1e+308, but its size must be between"),
        (f"auto[folds={10**20}]", "a whole number, at least 1 and at most 100"),
        (f"dawid-skene[max_iter={10**20}]", "a whole number, at least 1 and at most 1000000"),
    ],
)
def test_absurd_settings_are_refused_by_their_type(spec, words):
    with pytest.raises(MethodError) as problem:
        aggregators.create(spec)
    assert words in str(problem.value)


@pytest.mark.parametrize("value", [np.nan, 0.5, -1.0, np.inf])
def test_a_posterior_that_is_none_is_refused_by_name(value, monkeypatch):
    def broken(_self, part, params):
        return np.full((part.stop - part.start, part.n_classes), value)

    monkeypatch.setattr(aggregators.find("log-odds"), "part_posterior", broken)
    with pytest.raises(MethodError, match="gave no probabilities for 8 items; choose another"):
        aggregate(relation(ROWS), "log-odds[smoothing=2]")


def test_memory_that_is_not_there_is_one_line(tmp_path):
    done = run("simulate", "--n-items", 10**12, "--n-annotators", 10**12, "--folder", "s", cwd=tmp_path)  # noqa: E501  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


CODES = {"item": [0, 1], "annotator": [0, 0], "label": [0, 1]}
NAMES = {"items": ["a", "b"], "annotators": ["x"], "classes": ["p", "q"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"item": [0.0, 1.5]}, "item codes are whole numbers, but these are float64"),
        ({"label": [0.0, 1.0]}, "class codes are whole numbers, but these are float64"),
        ({"label": ["0", "1"]}, "class codes are whole numbers"),
        ({"label": [0, 2]}, "the class code 2 is out of range: there are 2 names"),
        ({"annotator": [0, -1]}, "the annotator code -1 is out of range: there are 1 names"),
        ({"item": [0, 300]}, "the item code 300 is out of range"),
        ({"item": [0]}, "columns of different length"),
        ({"items": ["a", "a"]}, "the item 'a' appears twice among the names"),
        ({"classes": ["p", "p"]}, "the class 'p' appears twice among the names"),
        ({"annotators": []}, "the annotator code 0 is out of range: there are 0 names"),
    ],
)
def test_codes_that_are_none_are_refused(change, words):
    given = CODES | NAMES | change
    given |= {name: np.array(given[name]) for name in CODES}
    with pytest.raises(DataError, match=words):
        Annotations.from_codes(**given)
    if not {"label", "classes"} & change.keys():
        given["value"] = given.pop("label")
        del given["classes"]
        with pytest.raises(DataError, match=words):
            Numbers.from_codes(**given)


def test_codes_may_be_empty():
    assert len(Annotations.from_codes([], [], [], items=2, annotators=1, classes=2)) == 0


REPEATED = "task,worker,label\na,x,2\na,x,1\nb,x,1\na,y,1\na,x,3\n"


@pytest.mark.parametrize(
    ("rule", "labels"), [("count", ["1", "2", "3"]), ("first", ["2"]), ("last", ["3"])]
)
def test_repeats_count_or_one_of_them_does(rule, labels, tmp_path):
    (tmp_path / "a.csv").write_text(REPEATED)
    (tmp_path / "set").mkdir()
    nested = {"a": {"x": ["2", "1", "3"], "y": "1"}, "b": {"x": "1"}}
    (tmp_path / "n.json").write_text(json.dumps(nested))
    found = [read(tmp_path / "a.csv", duplicates=rule), read(nested, duplicates=rule)]
    found.append(read(tmp_path / "n.json", duplicates=rule))
    for one in found:
        assert [x for item, who, x in rows_of(one) if (item, who) == ("a", "x")] == labels
        assert len(one) == 2 + len(labels)


def test_repeats_are_refused_on_request_and_reported_otherwise(tmp_path):
    (tmp_path / "a.csv").write_text(REPEATED)
    with pytest.raises(DataError, match="annotator 'x' labelled item 'a' more than once"):
        read(tmp_path / "a.csv", duplicates="error")
    with pytest.raises(DataError, match="more than once"):
        read({"a": {"x": ["1", "1"]}}, duplicates="error")
    done = run("aggregate", "a.csv", "-s", "majority", cwd=tmp_path)
    assert b"2 labels repeat those of the same annotator on the same item, and all" in done.stderr
    done = run("aggregate", "a.csv", "-s", "majority", "--duplicates", "last", cwd=tmp_path)
    assert done.stderr.startswith(b"2 rows are left out: 2 repeated\n")
    assert run("agree", "a.csv", "--duplicates", "error", cwd=tmp_path).returncode == 2
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "answers.json").write_text('{"0": {"0": [1, 0], "1": 1}}')
    done = run("aggregate", "set", "-s", "majority", "--duplicates", "error", cwd=tmp_path)
    assert b"answers.json: annotator '0' labelled item '0' more than once" in done.stderr


def test_metadata_with_too_few_names_are_one_line(tmp_path):
    (tmp_path / "answers.json").write_text('{"0": {"0": 1}, "1": {"1": 0}}')
    for names in ({"items": ["a"]}, {"items": ["a", "b"], "annotators": [], "classes": ["x"]}, 3):
        content = {"n_classes": 2, "names": names}
        (tmp_path / "metadata.json").write_text(json.dumps(content))
        if isinstance(names, dict):
            with pytest.raises(DataError, match=r"out of range|the names in the metadata"):
                read(tmp_path)


def test_numbers_have_limits_too():
    for name in estimators:
        for field in describe_fields(estimators.find(name)):
            if any(option.base is float for option in field.options):
                with pytest.raises(MethodError):
                    estimators.create(f"{name}[{field.name}=1e-320]")
