import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus import Annotations, aggregate, aggregators, simulate
from dissensus.aggregation import auto
from dissensus.aggregation.auto import MEMBERS, ORDERED_MEMBERS
from dissensus.aggregation.held_out import held_out, stopped_early
from dissensus.answers.selections import content_folds, content_sample
from dissensus.base.probability import ENOUGH_GOLD, fit_temperature, label_temperature, temper
from dissensus.planning.label_errors import checks_needed, doubts, label_errors

from ..support import annotation_rows, relation, shared, shared_truth


def crowd(**options):
    settings = {"n_items": 300, "n_annotators": 20, "n_classes": 3, "feedback": 5, **options}
    return simulate("independent-confusion", **settings)


def renamed(annotations, seed=0):
    """Return the same annotations with items and annotators in another order, under new names."""
    rng = np.random.default_rng(seed)
    item, annotator = (rng.permutation(n) for n in (annotations.n_items, annotations.n_annotators))
    other = Annotations.from_codes(
        item[annotations.item],
        annotator[annotations.annotator],
        annotations.label.astype(int),
        items=annotations.n_items,
        annotators=annotations.n_annotators,
        classes=annotations.classes,
    )
    return other, item, annotator


# Temperatures


def test_tempering_keeps_the_order_of_classes_and_gold():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(4), 50)
    tempered = temper(posterior, np.full(50, 3.0))
    np.testing.assert_array_equal(tempered.argsort(axis=1), posterior.argsort(axis=1))
    assert (tempered.max(axis=1) <= posterior.max(axis=1) + 1e-12).all()
    np.testing.assert_array_equal(temper(np.eye(3), np.ones(3) * 7), np.eye(3))
    assert (np.diff(label_temperature(np.arange(1, 50))) > 0).all()


def test_a_fitted_temperature_recovers_the_one_that_was_applied():
    rng = np.random.default_rng(1)
    true = rng.dirichlet(np.ones(3), 20_000)
    truth = (true.cumsum(axis=1) < rng.random((len(true), 1))).sum(axis=1)
    too_sure = temper(true, np.full(len(true), 1 / 2.5))
    assert fit_temperature(too_sure, truth) == pytest.approx(2.5, rel=0.05)


def test_results_keep_the_posterior_and_calibrate_what_people_read():
    result = aggregate(crowd().annotations, "dawid-skene")
    expected = temper(result.posterior, label_temperature(result.answers.labels_per_item))
    np.testing.assert_allclose(result.probabilities, expected)
    assert (result.confidence <= result.posterior.max(axis=1) + 1e-12).all()
    np.testing.assert_array_equal(result.predictions.posterior, result.probabilities)
    assert "public data sets" in result.calibration


@pytest.mark.parametrize("name", ["majority", "naive-soft", "wawa", "iwmv"])
def test_vote_shares_are_not_tempered(name):
    result = aggregate(crowd().annotations, name)
    np.testing.assert_array_equal(result.probabilities, result.posterior)
    assert "not calibrated" in result.calibration


@pytest.mark.parametrize("name", ["dawid-skene", "auto"])
def test_with_fifty_known_items_the_temperature_is_fitted_to_them(name, tmp_path):
    simulated = crowd(n_items=400, feedback=3, seed=3)
    known = dict(list(simulated.truths.items())[:ENOUGH_GOLD])
    result = aggregate(simulated.annotations, name, gold=known)
    assert result.n_gold == ENOUGH_GOLD
    assert 0 < result.gold_errors < ENOUGH_GOLD
    assert f"{ENOUGH_GOLD} known items" in result.calibration
    few = aggregate(simulated.annotations, name, gold=dict(list(known.items())[:-1]))
    assert few.n_gold == 0
    result.save(tmp_path / "saved")
    again = type(result).load(tmp_path / "saved")
    np.testing.assert_array_equal(again.probabilities, result.probabilities)
    assert again.n_gold, again.gold_errors == (result.n_gold, result.gold_errors)


# The pool


def test_the_pool_is_the_weighted_mean_of_tempered_members():
    annotations = crowd().annotations
    result = aggregate(annotations, "auto")
    assert result.params.members == MEMBERS
    assert result.params.weight.sum() == pytest.approx(1)
    assert result.params.weight.min() >= 0.1 / len(MEMBERS) - 1e-12
    temperature = label_temperature(annotations.labels_per_item, 3.0)
    members = [
        aggregators.create(spec).predict(result_of(annotations, spec, own), annotations).posterior
        for spec, own in zip(MEMBERS, result.params.params, strict=True)
    ]
    mean = sum(
        w * temper(p, temperature) for w, p in zip(result.params.weight, members, strict=True)
    )
    again = result.predict(annotations)
    np.testing.assert_allclose(again.posterior, mean, atol=1e-9)


def result_of(annotations, spec, params):
    from dataclasses import replace

    return replace(aggregate(annotations, spec), params=params)


def test_ordered_classes_have_ordered_members():
    annotations = crowd(n_classes=4).annotations
    assert aggregate(annotations, "auto").params.members == MEMBERS
    ordered = aggregate(annotations.with_scale("ordinal"), "auto")
    assert ordered.params.members == (*MEMBERS, *ORDERED_MEMBERS)


def test_large_data_go_without_effects_of_items(monkeypatch):
    annotations = crowd().annotations
    monkeypatch.setattr(auto, "_CELLS", len(annotations))
    members = aggregate(annotations, "auto").params.members
    assert members == tuple(one for one in MEMBERS if not one.startswith("crossed-effects"))


def test_the_held_out_likelihood_of_tempered_posteriors_is_that_of_the_mixture_they_make():
    annotations = crowd().annotations
    method = [aggregators.create("dawid-skene-map")]
    plain, tempered = (held_out(annotations, method, scale=scale) for scale in (None, 1e9))
    assert not np.allclose(plain.probability, tempered.probability)
    fold = content_folds(annotations, 5, 0)
    for number in range(5):
        out = plain.annotation[fold[plain.annotation] == number]
        params = stopped_early(method[0]).fit(annotations.keep(fold != number)).params
        given = params.confusion[annotations.annotator[out], :, annotations.label[out]]
        even = 0.99 * given.mean(axis=1) + 0.01 / annotations.n_classes
        found = tempered.probability[0, np.isin(tempered.annotation, out)]
        np.testing.assert_allclose(found, even, atol=1e-6)


def test_the_pool_does_not_depend_on_names():
    annotations = crowd(seed=5).annotations
    other, item, annotator = renamed(annotations)
    here, there = aggregate(annotations, "auto"), aggregate(other, "auto")
    np.testing.assert_allclose(here.params.weight, there.params.weight, atol=1e-7)
    np.testing.assert_allclose(here.posterior, there.posterior[item], atol=1e-6)
    np.testing.assert_allclose(here.quality, there.quality[annotator], atol=1e-6)


@given(rows=annotation_rows(), seed=st.integers(0, 5))
def test_folds_follow_the_content_and_spread_the_labels_of_an_item(rows, seed):
    annotations = relation(rows)
    fold = content_folds(annotations, 3, seed)
    for first, last in zip(annotations.index[:-1], annotations.index[1:], strict=True):
        count = np.bincount(fold[first:last], minlength=3)
        assert count.max() - count.min() <= 1


def test_folds_and_samples_of_renamed_annotations_are_the_same():
    annotations = crowd(seed=7).annotations
    other, item, annotator = renamed(annotations, seed=1)

    def folds(data, items, annotators):
        rows = zip(items, annotators, data.label, content_folds(data, 5, 0), strict=True)
        return {(int(i), int(a), int(k)): int(fold) for i, a, k, fold in rows}

    here = folds(annotations, item[annotations.item], annotator[annotations.annotator])
    assert here == folds(other, other.item, other.annotator)
    size = len(content_sample(annotations, 500, 0))
    assert size == len(content_sample(other, 500, 0))
    assert 400 < size < 600


# Errors that are left


def test_the_interval_of_errors_is_what_the_formula_says():
    errors = label_errors(np.full(1000, 0.9))
    reach = 1.645 * np.sqrt(0.49**2 + 1 / 100)
    assert errors.expected == pytest.approx(100, rel=0.01)
    assert errors.low == pytest.approx(100 * np.exp(-reach), rel=0.01)
    assert errors.high == pytest.approx(100 * np.exp(reach), rel=0.01)


def test_checked_labels_move_the_number_of_errors_and_narrow_it():
    confidence = np.full(1000, 0.9)
    plain = label_errors(confidence)
    for n_wrong in (0, 20, 60):
        checked = label_errors(confidence, n_checked=200, n_wrong=n_wrong)
        assert checked.high - checked.low < plain.high - plain.low
        assert abs(checked.expected - 5 * n_wrong) < abs(plain.expected - 5 * n_wrong) + 5
    sure = label_errors(np.full(200, 0.99999), n_checked=200, n_wrong=40)
    assert sure.low < 40 < sure.high * 1.1


def test_errors_outside_a_list_are_those_of_the_rest():
    confidence = np.linspace(0.5, 1, 101)
    left, whole = label_errors(confidence, 30), label_errors(confidence)
    assert left.n_items == 71
    assert left.expected == pytest.approx((1 - confidence[30:]).sum(), rel=0.01)
    assert left.low < left.expected < left.high < whole.high
    assert (doubts(confidence, whole.expected)[:-1] >= doubts(confidence, whole.expected)[1:]).all()
    assert doubts(confidence, 10.0).sum() == pytest.approx(10, rel=1e-3)


def test_nothing_is_wrong_where_nothing_is_in_doubt():
    assert label_errors(np.ones(10)).expected == 0
    assert label_errors(np.ones(10)).reaches(0.99)
    assert label_errors(np.zeros(0)).reaches(0.99)
    assert 0.95 ** checks_needed(0.95) <= 0.05 < 0.95 ** (checks_needed(0.95) - 1)


@pytest.mark.parametrize("name", ["rte", "bluebirds", "weather_cf", "labelme"])
def test_the_default_is_right_about_as_often_as_it_claims(name):
    result = aggregate(shared(name), "auto")
    truth = shared_truth(name)
    items = result.answers.items.tolist()
    known = [k for k, item in enumerate(items) if item in truth]
    right = np.array([result.labels[k] == truth[items[k]] for k in known])
    assert abs(result.confidence[known].mean() - right.mean()) < 0.1
    assert not label_errors(result.confidence[known]).reaches(0.95)
