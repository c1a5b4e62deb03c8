"""What was saved by the release before is loaded: a result of every kind, and a model of each sort.

The folders in `saved/` were written once, by `save` or the command, from `../golden/inputs`; they
are not written again.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import dissensus as ds

SAVED = Path(__file__).parent / "saved"
INPUTS = Path(__file__).parents[1] / "golden" / "inputs"
ELEMENTS = ("sets", "rankings", "texts", "spans", "boxes", "points", "masks")
on_torch = pytest.mark.skipif(find_spec("torch") is None, reason="networks need torch")


def test_labels_are_loaded():
    loaded = ds.ClassAggregation.load(SAVED / "classes")
    again = ds.aggregate(INPUTS / "classes.csv", "dawid-skene")
    assert loaded.labels.tolist() == again.labels.tolist()
    np.testing.assert_allclose(loaded.confidence, again.confidence, atol=1e-7)
    np.testing.assert_allclose(loaded.params.confusion, again.params.confusion, atol=1e-7)
    assert loaded.predict(INPUTS / "classes.csv").labels.tolist() == again.labels.tolist()


def test_values_are_loaded():
    loaded = ds.NumberAggregation.load(SAVED / "numbers")
    again = ds.aggregate(INPUTS / "numbers.csv", "gaussian")
    np.testing.assert_allclose(loaded.value, again.value, atol=1e-7)
    np.testing.assert_allclose(loaded.noise, again.noise, atol=1e-7)


@pytest.mark.parametrize("kind", ELEMENTS)
def test_answers_of_every_kind_are_loaded(kind):
    loaded = ds.AnswerAggregation.load(SAVED / kind)
    again = ds.aggregate(INPUTS / f"{kind}.csv")
    assert loaded.to_polars().columns == again.to_polars().columns
    assert loaded.to_polars().height == again.to_polars().height
    assert loaded.answers == again.answers


@on_torch
def test_classifiers_are_loaded():
    features = np.zeros((2, 2), dtype="float32")
    classifier = ds.CrowdClassifier.load(SAVED / "learning")
    assert classifier.predict_proba(features).shape == (2, 3)
    tendency = ds.TendencyClassifier.load(SAVED / "tendency")
    assert tendency.predict_annotator_proba(features, ["Ann"]).shape == (2, 1, 3)
    recovery = ds.DistributionRecovery.load(SAVED / "recovery")
    assert recovery.predict_proba(features).shape == (2, 3)


@on_torch
def test_few_shot_models_are_loaded():
    model = ds.FewShotCrowd.load(SAVED / "meta")
    assert repr(model)
