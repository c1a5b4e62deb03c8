"""Estimators as scikit-learn has them: its own checks, sparse inputs, targets, errors."""

import inspect
import warnings

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("torch", reason="estimators need torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="estimators need scikit-learn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from dissensus import DataError
from dissensus.deep.learning.classifier import CrowdClassifier
from dissensus.deep.meta.episodes import Sizes
from dissensus.deep.meta.few_shot import FewShotCrowd
from dissensus.deep.nn.settings import Training
from dissensus.deep.recovery.estimator import DistributionRecovery
from dissensus.deep.tendency.classifier import TendencyClassifier

FAST = Training(epochs=30, lr=0.02, held_out=0.0)
ESTIMATORS = [
    CrowdClassifier(hidden=0, dropout=0.0, input_dropout=0.0, training=FAST),
    TendencyClassifier("linear[folds=2,kernel=linear]"),
    DistributionRecovery("kernel-ridge"),
    FewShotCrowd(
        "ridge",
        sizes=Sizes(ways=(2,), shots=(1,), annotators=(2,), queries=1),
        tuning=1,
        training=Training(epochs=1, held_out=0.0),
    ),
]
CLASSIFIERS = ESTIMATORS[:3]
# The checks of scikit-learn that fail, and why they have to.
ONE_COLUMN = {
    "check_supervised_y_2d": "a matrix of one column is one annotator, who may have left items "
    "unlabelled, and not a column that should have been flat: there is nothing to warn of"
}
EXPECTED = {"CrowdClassifier": ONE_COLUMN, "TendencyClassifier": ONE_COLUMN}


def named(estimator):
    return type(estimator).__name__


each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
each_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=named)


@each
def test_the_checks_of_scikit_learn_pass_but_for_those_explained_here(estimator):
    expected = EXPECTED.get(named(estimator), {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = check_estimator(
            estimator, expected_failed_checks=expected, on_fail="raise", on_skip=None
        )
    failed = {one["check_name"] for one in done if one["status"] == "xfail"}
    assert failed == set(expected)


@each
def test_every_method_but_fit_raises_not_fitted_error_before_it(estimator, tmp_path):
    estimator, x, y = clone(estimator), np.eye(3), [0, 1, 2]
    settings = {"fit", "get_params", "set_params", "get_metadata_routing", "load"}
    settings |= {"build_adapter"}  # of parts that are not fitted yet
    arguments = {"X": x, "y": y, "annotations": [[0], [1], [2]], "folder": tmp_path / "model"}
    arguments |= {"labels": y, "name": "ann", "column": "age", "quota": {"young": 1}}
    arguments |= {"annotators": None, "question": None, "items": ["a", "b", "c"]}
    walked = 0
    for name in dir(type(estimator)):
        if name.startswith(("_", "set_")) or name in settings:
            continue
        member = inspect.getattr_static(estimator, name)
        if isinstance(member, property):
            with pytest.raises(AttributeError):  # NotFittedError is one
                getattr(estimator, name)
        elif inspect.isroutine(getattr(estimator, name)):
            needed = [
                one.name
                for one in inspect.signature(getattr(estimator, name)).parameters.values()
                if one.default is one.empty and one.kind is not one.VAR_KEYWORD
            ]
            with pytest.raises(NotFittedError):
                getattr(estimator, name)(**{one: arguments[one] for one in needed})
            walked += 1
    assert walked >= 2


def crowd(n=60):
    """Return inputs, one label per item, and a matrix of noisy labels."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    x = 3 * np.eye(3, 6)[y] + rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.5)
    return x, y, np.where(rng.random((n, 4)) < 0.9, y[:, None], 0)


@each_classifier
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_inputs_give_what_dense_ones_give(estimator, kind):
    x, _, labels = crowd()
    dense = estimator.fit(x.astype(np.float32), labels).predict_proba(x.astype(np.float32))
    thin = estimator.fit(kind(x.astype(np.float32)), labels).predict_proba(kind(x))
    np.testing.assert_allclose(thin, dense, atol=1e-6)


def test_few_shot_sources_may_be_sparse():
    x, y, labels = crowd()
    model = ESTIMATORS[3].fit(sparse.csr_array(x), y)
    assert model.adapt(sparse.csr_array(x), labels).predict(x).shape == (60,)


@each_classifier
def test_texts_are_classified_behind_a_vectorizer(estimator):
    pd = pytest.importorskip("pandas")
    texts = pd.Series(["good film", "a good one", "bad film", "really bad"] * 10)
    labels = np.tile([[0, 0], [0, 0], [1, 1], [1, -1]], (10, 1))
    model = make_pipeline(TfidfVectorizer(), estimator).fit(texts, labels)
    assert model.predict(["so good", "so bad"]).tolist() == [0, 1]


def test_a_sparse_matrix_that_is_too_large_is_refused():
    wide = sparse.csr_array((100_000, 100_000), dtype=np.float32)
    with pytest.raises(DataError, match=r"would take 37 GiB; reduce its columns"):
        CrowdClassifier().fit(wide, np.zeros(100_000, int))


@each_classifier
def test_one_label_per_item_is_a_plain_target(estimator):
    x, y, _ = crowd()
    names = np.array(["cat", "dog", "fox"])[y]
    model = estimator.fit(x, names)
    assert model.classes_.tolist() == ["cat", "dog", "fox"]
    assert model.score(x, names) > 0.9
    assert cross_val_score(estimator, x, names, cv=2).min() > 0.8


@each_classifier
def test_minus_one_is_a_class_of_a_plain_target(estimator):
    x, y, _ = crowd()
    model = estimator.fit(x, y - 1)
    assert model.classes_.tolist() == [-1, 0, 1]
    assert set(model.predict(x).tolist()) == {-1, 0, 1}


def test_tendencies_predict_a_consensus_and_score_it():
    x, y, labels = crowd()
    model = ESTIMATORS[1].fit(x, labels)
    assert (model.predict(x) == y).mean() > 0.9
    assert model.score(x, y) == (model.predict(x) == y).mean()
    assert model.score(x, labels) < 0  # a log-likelihood
