"""Texts in arrays that leave the library are Python strings, so NumPy and its friends take them."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from types import NoneType
from typing import Any

import numpy as np
import pytest

import dissensus as ds
from dissensus import Annotations, aggregators, estimators, simulate

from ..answer_sets import drawn, made

CROWD = simulate("independent-confusion", n_items=40, n_annotators=6, n_classes=2, feedback=4)
RESULT = ds.aggregate(CROWD.annotations, "majority")
TRUTH = {str(item): str(label) for item, label in enumerate(CROWD.truth.tolist())}
NUMBERS = ds.Numbers.from_columns(
    [*"aaabbbccc"], [*"xyz"] * 3, [1.0, 2.0, 1.5, 4.0, 4.5, 4.1, 9.0, 9.5, 9.25]
)
KINDS = ("spans", "boxes", "points", "masks")
VERBS = {
    "identify": lambda: ds.identify(CROWD.annotations),
    "item_scores": lambda: ds.item_scores(CROWD.annotations),
    "agree": lambda: ds.agree(CROWD.annotations),
    "compare": lambda: ds.compare(CROWD.annotations, ["majority", "wawa"]),
    "evaluate": lambda: ds.evaluate(RESULT, TRUTH),
    "plan": lambda: ds.plan(CROWD.annotations, budget=5),
    "report": lambda: ds.report(CROWD.annotations),
    "summarise": lambda: ds.summarise(CROWD.annotations, RESULT),
    "bootstrap": lambda: ds.bootstrap(CROWD.annotations, "majority", resamples=3),
    "check": lambda: ds.check(CROWD.annotations),
}


def arrays(of: Any, seen: dict[int, Any]) -> Iterator[np.ndarray]:
    """Yield every array that can be reached through public attributes."""
    if id(of) in seen or isinstance(of, (str, int, float, NoneType, type)):
        return
    seen[id(of)] = of
    if isinstance(of, np.ndarray):
        yield of
    elif isinstance(of, Mapping):
        for value in [*of, *of.values()]:
            yield from arrays(value, seen)
    elif isinstance(of, (tuple, list)):
        for value in of:
            yield from arrays(value, seen)
    if is_dataclass(of) or hasattr(of, "_fields"):
        names = [name for name in dir(of) if not name.startswith("_")]
        for name in names:
            value = getattr(of, name, None)
            if not callable(value):
                yield from arrays(value, seen)


def check_texts(of: Any) -> int:
    """Fail if an array holds other texts than Python strings; return how many hold texts."""
    texts = 0
    for array in arrays(of, {}):
        assert array.dtype.kind != "T", array
        given = array.tolist() if array.dtype == object and array.ndim == 1 else []
        if given and set(map(type, given)) <= {str, NoneType}:
            texts += 1
            assert array.astype(str).dtype.kind == "U"
            assert (array == given).all()
            if None not in given:
                assert set(np.unique(array)) == set(given)
    return texts


@pytest.mark.parametrize("name", list(aggregators))
def test_results_of_every_method_hold_python_strings(name):
    result = ds.aggregate(CROWD.annotations, name)
    assert check_texts(result) >= 5
    assert check_texts(result.predict(CROWD.annotations.subset(items=["1", "2", "3"]))) >= 5


@pytest.mark.parametrize("name", list(estimators))
def test_estimates_of_numbers_hold_python_strings(name):
    assert check_texts(ds.aggregate(NUMBERS, name, authors={"a": "x"})) >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_every_kind_hold_python_strings(kind, tmp_path):
    result = ds.aggregate(made(kind, drawn(kind)))
    assert check_texts(result) >= 2
    result.save(tmp_path / "result")
    assert check_texts(ds.AnswerAggregation.load(tmp_path / "result")) >= 2
    assert check_texts(result.to_pandas()["item"].to_numpy()) == 1


@pytest.mark.parametrize("verb", VERBS)
def test_results_of_every_verb_hold_python_strings(verb):
    check_texts(VERBS[verb]())


def test_metrics_of_scikit_learn_take_labels():
    metrics = pytest.importorskip("sklearn.metrics")
    result = ds.aggregate(CROWD.annotations, "dawid-skene")
    truth = [TRUTH[item] for item in result.items["item"].tolist()]
    right = np.mean(result.labels == truth)
    assert metrics.accuracy_score(truth, result.labels) == pytest.approx(right)
    assert metrics.confusion_matrix(truth, result.labels).sum() == len(truth)
    assert metrics.f1_score(truth, result.labels, pos_label="1") > 0.5


def test_predictions_of_a_classifier_are_python_strings():
    pytest.importorskip("torch", reason="classifiers need torch: pip install '.[deep]'")
    metrics = pytest.importorskip("sklearn.metrics")
    x = np.random.default_rng(0).normal(size=(CROWD.annotations.n_items, 2)).astype(np.float32)
    training = ds.Training(epochs=1, held_out=0.0)
    predicted = ds.CrowdClassifier(training=training).fit(x, CROWD.annotations).predict(x)
    assert set(predicted.astype(str)) <= {"0", "1"}
    assert 0 <= metrics.accuracy_score([*TRUTH.values()], predicted) <= 1


def test_dataframes_merge_with_labels():
    pandas = pytest.importorskip("pandas")
    result = ds.aggregate(CROWD.annotations, "majority")
    truth = pandas.DataFrame(TRUTH.items(), columns=["item", "truth"])
    for table in (result.to_pandas(), pandas.DataFrame(dict(result.items))):
        merged = truth.merge(table, on="item")
        assert len(merged) == len(truth)
        assert (merged["truth"] == merged["label"]).mean() > 0.5
    assert result.to_polars()["label"].to_list() == result.labels.tolist()


def test_an_undecided_label_is_none():
    annotations = Annotations.from_columns("ab", "xy", "01", items="abc")
    labels = ds.aggregate(annotations, "majority").labels
    assert labels.dtype == object
    assert labels.tolist() == ["0", "1", None]


@pytest.mark.parametrize("names", [np.array(["ä", "b"], dtype=np.dtypes.StringDType()), ["ä", "b"]])
def test_names_in_any_array_become_python_strings_that_are_not_shared(names):
    given = np.array(["ä", "b"], dtype=object) if isinstance(names, list) else names
    annotations = Annotations.from_codes([0], [0], [0], items=given, annotators=1, classes=["x"])
    given[0] = "other"
    assert annotations.items.tolist() == ["ä", "b"]
    assert check_texts(annotations) >= 3


def test_half_a_surrogate_pair_is_no_name():
    with pytest.raises(ds.DataError, match="is not valid text"):
        Annotations.from_columns(["a\ud83d", "\ude00b"], "xy", "01")
