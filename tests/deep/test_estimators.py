"""The contract of `nn.estimator`: the same for every estimator and every registered method."""
# ruff: noqa: E402

import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="estimators need torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="estimators need scikit-learn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dissensus import Annotations, DataError, OptionError, OutputError
from dissensus.deep.learning.classifier import CrowdClassifier
from dissensus.deep.meta.episodes import Sizes
from dissensus.deep.meta.few_shot import FewShotCrowd
from dissensus.deep.nn.settings import Training
from dissensus.deep.recovery.estimator import DistributionRecovery
from dissensus.deep.tendency.classifier import TendencyClassifier
from dissensus.registry import adapters, learners, recoverers, tendencies


class Case(NamedTuple):
    """An estimator, its methods, and settings that make every one of them quick."""

    estimator: type
    methods: tuple[str, ...]
    settings: dict[str, Any]
    one_label: bool = False  # whether it is fitted to one label per item, not to a matrix
    by_annotator: bool = True  # whether it has `predict_annotator_proba`
    predicts: bool = True  # whether it has `predict` and `predict_proba`
    name: str = "method"  # of the setting that holds the method


TINY = Training(epochs=1, batch=16, held_out=0.0)
QUICK_RECOVERERS = {
    "seedbert": "seedbert[n=2,epochs=1]",
    "auto": "auto[n=5,steps=1]",
    "kernel-ridge": "kernel-ridge",
    "marginal": "marginal",
}
RECOVERERS = tuple(
    QUICK_RECOVERERS.get(name, f"{name}[epochs=1,steps=1]")
    for name in recoverers
    if name != "attention-heads"  # needs token features; part of test_recovery.py
)
LINEAR = "folds=2,kernel=linear"
QUERY = "epochs=1,width=8,layers=1,heads=2,hidden=8,fc=8"
QUICK_TENDENCIES = {
    "auto": "queries=never,folds=2",
    **dict.fromkeys(["linear", "low-rank", "independent", "consensus"], LINEAR),
    "confused-consensus": LINEAR,
    "sim-label": f"{LINEAR},rounds=1",
    "d-lema": "epochs=1,samples=2",
    **dict.fromkeys(["multi-task", "annotator-embedding", "padl", "crowd"], "epochs=1"),
    **dict.fromkeys(["hubi-simple", "hubi-medium", "hubi-formula"], "epochs=1"),
    "qumatl": f"{QUERY},head_hidden=8",
    "query": f"{QUERY},fits=1",
}
CASES = [
    Case(CrowdClassifier, tuple(learners), {"hidden": 4, "training": TINY}),
    Case(
        TendencyClassifier,
        tuple(f"{name}[{QUICK_TENDENCIES.get(name, '')}]" for name in reversed(list(tendencies))),
        {},
    ),
    Case(DistributionRecovery, RECOVERERS, {}, by_annotator=False),
    Case(
        FewShotCrowd,
        tuple(adapters),
        {
            "sizes": Sizes(ways=(2,), shots=(1,), annotators=(2,), queries=1),
            "tuning": 1,
            "episodes": 16,
            "training": TINY,
        },
        one_label=True,
        by_annotator=False,
        predicts=False,
        name="adapter",
    ),
]
METHODS = [
    pytest.param(case, method, id=f"{case.estimator.__name__}-{method}")
    for case in CASES
    for method in case.methods
]
each_estimator = pytest.mark.parametrize("case", CASES, ids=lambda case: case.estimator.__name__)
each_method = pytest.mark.parametrize(("case", "method"), METHODS)


def data():
    """Return inputs (item, feature) and labels (item, annotator) in three classes, some missing."""
    rng = np.random.default_rng(0)
    truth = np.arange(36) % 3
    x = 3 * np.eye(3, 4)[truth] + rng.normal(size=(36, 4))
    labels = np.where(rng.random((36, 4)) < 0.8, truth[:, None], rng.integers(3, size=(36, 4)))
    labels[rng.random((36, 4)) < 0.2] = -1
    labels[:3] = truth[:3, None]
    return x, labels


def labels_for(case, labels):
    return labels.max(axis=1) if case.one_label else labels


def make(case, method=None, **more):
    settings = {case.name: method or case.methods[0], **case.settings, **more}
    return case.estimator(**settings)


@cache
def fitted(case_number, method):
    case = CASES[case_number]
    x, labels = data()
    steps = []
    estimator = make(case, method).fit(
        x, labels_for(case, labels), progress=lambda *step: steps.append(step)
    )
    return estimator, steps


def fit_of(case, method=None):
    return fitted(CASES.index(case), method or case.methods[0])


@each_estimator
def test_nothing_but_fit_works_before_it(case, tmp_path):
    estimator, (x, labels) = make(case), data()
    with pytest.raises(NotFittedError):
        estimator.save(tmp_path / "model")
    if case.predicts:
        with pytest.raises(NotFittedError):
            estimator.predict(x)
        with pytest.raises(NotFittedError):
            estimator.predict_proba(x)
    if case.by_annotator:
        with pytest.raises(NotFittedError):
            estimator.predict_annotator_proba(x)
    assert estimator.fit(x, labels_for(case, labels)) is estimator


@each_method
def test_predictions_are_distributions_and_labels_keep_their_dtype(case, method):
    estimator, _ = fit_of(case, method)
    x, labels = data()
    assert estimator.classes_.tolist() == [0, 1, 2]
    assert estimator.classes_.dtype == labels.dtype
    if case.predicts:
        proba = estimator.predict_proba(x[:5])
        assert proba.shape == (5, 3)
        np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
        predicted = estimator.predict(x[:5])
        assert predicted.shape == (5,)
        assert predicted.dtype == labels.dtype
    if case.by_annotator:
        given = estimator.predict_annotator_proba(x[:5], ["0", "2"])
        assert given.shape == (5, 2, 3)
        np.testing.assert_allclose(given.sum(axis=2), 1, atol=1e-5)
        with pytest.raises(DataError, match="annotator 'nobody' gave no labels"):
            estimator.predict_annotator_proba(x[:5], ["nobody"])


@each_method
def test_progress_is_called_with_steps_and_a_message(case, method):
    _, steps = fit_of(case, method)
    for done, total, message in steps:
        assert 0 <= done <= total
        assert isinstance(message, str)


@each_method
def test_what_is_saved_loads_and_predicts_the_same(case, method, tmp_path):
    estimator, _ = fit_of(case, method)
    estimator.save(tmp_path / "model")
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "model.json",
        "weights.safetensors",
    ]
    again = case.estimator.load(tmp_path / "model")
    assert again.get_params() == estimator.get_params()
    assert again.classes_.dtype == estimator.classes_.dtype
    x, _ = data()
    for name, applies in (
        ("predict_proba", case.predicts),
        ("predict", case.predicts),
        ("predict_annotator_proba", case.by_annotator),
    ):
        if applies:
            np.testing.assert_array_equal(getattr(again, name)(x), getattr(estimator, name)(x))
    again.save(tmp_path / "model")  # a saved model may be replaced


@each_estimator
@pytest.mark.parametrize(
    ("kind", "classes", "dtype"),
    [
        ("integers", [10, 11, 12], "i"),
        ("floats", [0.0, 1.0, 2.0], "f"),
        ("texts", ["a", "b", "c"], "U"),
        ("annotations", ["0", "1", "2"], "O"),
    ],
)
def test_labels_come_back_as_they_came(case, kind, classes, dtype, tmp_path):
    x, labels = data()
    if case.one_label:
        labels = labels.max(axis=1)
        if kind == "annotations":
            pytest.skip("fitted to one label per item")
    given = {
        "integers": np.where(labels < 0, -1, labels + 10),
        "floats": np.where(labels < 0, np.nan, labels),
        "texts": np.array(["", "a", "b", "c"])[labels + 1],
        "annotations": Annotations.from_matrix(labels) if labels.ndim > 1 else None,
    }[kind]
    estimator = make(case).fit(x, given)
    estimator.save(tmp_path / "model")
    for each in (estimator, case.estimator.load(tmp_path / "model")):
        assert each.classes_.tolist() == classes
        assert each.classes_.dtype.kind == dtype
        if case.predicts:
            assert set(each.predict(x).tolist()) <= set(classes)


@each_estimator
def test_settings_are_those_of_scikit_learn(case):
    estimator = make(case)
    assert clone(estimator).get_params() == estimator.get_params()
    for name, default in case.estimator.nested.items():
        field = next(iter(vars(default)))
        value = getattr(getattr(estimator, name) or default, field)
        changed = clone(estimator).set_params(**{f"{name}__{field}": value})
        assert getattr(getattr(changed, name), field) == value
        assert changed.get_params()[f"{name}__{field}"] == value
        with pytest.raises(OptionError, match="has no setting 'nothing'"):
            estimator.set_params(**{f"{name}__nothing": 1})
    with pytest.raises(ValueError, match="nothing"):
        estimator.set_params(nothing=1)


@each_estimator
def test_inputs_and_annotations_have_to_fit(case):
    x, labels = data()
    given = labels_for(case, labels)
    with pytest.raises(ValueError, match=r"36|35"):
        make(case).fit(x[1:], given)
    broken = x.copy()
    broken[7, 1] = np.nan
    with pytest.raises(DataError, match="input 7: a number is missing"):
        make(case).fit(broken, given)
    if case.predicts:
        estimator, _ = fit_of(case)
        with pytest.raises(DataError, match="input 7: a number is missing"):
            estimator.predict_proba(broken)
        with pytest.raises(DataError, match=r"X has 3 features, but .* is expecting 4"):
            estimator.predict_proba(x[:, :3])
        with pytest.raises(DataError, match="fitted to arrays"):
            estimator.predict_proba(["a text"])


@each_estimator
def test_folders_that_hold_something_else_are_refused(case, tmp_path):
    estimator, _ = fit_of(case)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("…")
    with pytest.raises(OutputError, match="holds something else"):
        estimator.save(tmp_path / "other")
    for nothing in ("other", "nowhere"):
        with pytest.raises(DataError, match=f"not a saved {case.estimator.__name__}"):
            case.estimator.load(tmp_path / nothing)
    estimator.save(tmp_path / "model")
    notes = tmp_path / "model" / "model.json"
    whole = notes.read_text()
    notes.write_text(json.dumps(json.loads(whole) | {"kind": "OtherEstimator"}))
    with pytest.raises(DataError, match="a saved OtherEstimator, which OtherEstimator"):
        case.estimator.load(tmp_path / "model")
    notes.write_text(json.dumps(json.loads(whole) | {"format": 0}))
    with pytest.raises(DataError, match="written by another version"):
        case.estimator.load(tmp_path / "model")
    for broken in ("{", "{}", whole[:-20]):
        notes.write_text(broken)
        with pytest.raises(DataError, match=f"a damaged {case.estimator.__name__}"):
            case.estimator.load(tmp_path / "model")
    notes.write_text(whole)
    weights = tmp_path / "model" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])
    with pytest.raises(DataError, match=f"a damaged {case.estimator.__name__}"):
        case.estimator.load(tmp_path / "model")
