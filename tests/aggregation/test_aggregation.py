"""Single methods: against plain references, published numbers, and known truth."""

import numpy as np
import pytest
from hypothesis import given, settings

from dissensus import (
    Annotations,
    DataError,
    MethodError,
    OptionError,
    aggregate,
    evaluate,
    simulate,
)
from dissensus.aggregation import DawidSkene, Majority

from ..support import annotation_rows, relation, rows_of, shared, shared_truth

MAXIMUM_LIKELIHOOD = "dawid-skene[smoothing=0,tol=1e-10,max_iter=3000]"


def plain_dawid_skene(annotations: Annotations, smoothing: float, rounds: int):
    """Return prior, confusion, posterior and objective by loops over single annotations."""
    n, m, k = annotations.n_items, annotations.n_annotators, annotations.n_classes
    answers = list(
        zip(
            annotations.item.tolist(),
            annotations.annotator.tolist(),
            annotations.label.tolist(),
            strict=True,
        )
    )
    posterior = annotations.votes() / annotations.votes().sum(axis=1, keepdims=True)
    for _ in range(rounds):
        prior = posterior.sum(axis=0) + smoothing
        prior /= prior.sum()
        confusion = np.full((m, k, k), smoothing)
        for item, annotator, given_class in answers:
            confusion[annotator, :, given_class] += posterior[item]
        confusion /= confusion.sum(axis=2, keepdims=True)
        joint = np.tile(np.log(prior), (n, 1))
        for item, annotator, given_class in answers:
            joint[item] += np.log(confusion[annotator, :, given_class])
        evidence = np.log(np.exp(joint).sum(axis=1))
        posterior = np.exp(joint - evidence[:, None])
        objective = evidence.sum() + smoothing * (np.log(prior).sum() + np.log(confusion).sum())
    return prior, confusion, posterior, objective


@settings(max_examples=25)
@given(rows=annotation_rows(60))
def test_dawid_skene_equals_a_plain_implementation(rows):
    annotations = relation(rows)
    result = aggregate(annotations, "dawid-skene[smoothing=0.3,tol=0,max_iter=7]")
    prior, confusion, posterior, objective = plain_dawid_skene(annotations, 0.3, 7)
    np.testing.assert_allclose(result.posterior, posterior, atol=1e-9)
    np.testing.assert_allclose(result.params.prior, prior, atol=1e-9)
    np.testing.assert_allclose(result.params.confusion, confusion, atol=1e-9)
    assert result.trace[-1] == pytest.approx(objective, abs=1e-9)


def test_dawid_and_skene_1979():
    """The paper's own data. Its patient 7 was rated 1 2 2 by observer 1; our copy has 1 1 2."""
    annotations = shared("anesthesia")
    rows = rows_of(annotations)
    rows[rows.index(("7", "1", "1"))] = ("7", "1", "2")
    result = aggregate(relation(rows), MAXIMUM_LIKELIHOOD)
    assert result.trace[0] == pytest.approx(-205.0911, abs=5e-5)
    assert result.trace[-1] == pytest.approx(-192.8909, abs=5e-5)
    assert result.params.prior.round(3).tolist() == [0.4, 0.422, 0.112, 0.067]
    assert result.params.confusion[0].round(3).tolist() == [
        [0.889, 0.111, 0.0, 0.0],
        [0.071, 0.876, 0.053, 0.0],
        [0.0, 0.339, 0.661, 0.0],
        [0.0, 0.0, 0.556, 0.444],
    ]
    eye = np.eye(4)
    np.testing.assert_allclose(result.params.confusion[1][2:], eye[2:], atol=1e-6)
    np.testing.assert_allclose(result.params.confusion[2][0], eye[0], atol=1e-6)
    np.testing.assert_allclose(result.params.confusion[4][0], eye[0], atol=1e-6)
    top = result.posterior.max(axis=1)  # as printed, before calibration
    unsure = top < 0.99
    assert result.answers.items[unsure].tolist() == ["7", "35", "38"]
    assert top[unsure].round(3).tolist() == [0.981, 0.948, 0.979]
    printed = (
        "1 4 2 2 2 2 1 3 2 2 4 3 1 2 1 1 1 1 2 2 2 2 2 2 1 1 2 1 1 1 1 3 1 2 2 4 2 3 3 1 1 1 2 1 2"
    )
    assert result.labels.tolist() == printed.split()


@pytest.mark.numeric
@pytest.mark.parametrize(
    ("name", "accuracy", "log_likelihood"),
    [
        ("bluebirds", 0.8981, -1888.117),
        ("rte", 0.9275, -3679.629),
        ("dog", 0.8426, -4745.550),
        ("d_product", 0.9393, -7568.747),
        ("face4", 0.6404, -4088.792),
        ("sentiment_polarity", 0.9150, -13729.636),
    ],
)
def test_dawid_skene_on_public_data(name, accuracy, log_likelihood):
    result = aggregate(shared(name), MAXIMUM_LIKELIHOOD)
    assert result.trace[-1] == pytest.approx(log_likelihood, abs=0.01)
    found = evaluate(result, shared_truth(name), resamples=0)
    assert found.scores["accuracy"].value == pytest.approx(accuracy, abs=0.002)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bluebirds", 0.7593),
        ("rte", 0.8969),
        ("dog", 0.8222),
        ("d_product", 0.8966),
        ("labelme", 0.766),
    ],
)
def test_majority_on_public_data_in_expectation_over_ties(name, expected):
    found = evaluate(aggregate(shared(name), "majority"), shared_truth(name), resamples=0)
    assert found.scores["accuracy"].value == pytest.approx(expected, abs=5e-5)


PUBLISHED = {
    "T1": ({"n_annotators": 30, "feedback": 10}, "independent-confusion", 0.760, 0.890),
    "T2": ({"n_annotators": 30, "imbalance": True}, "independent-confusion", 0.830, 0.895),
    "T3": ({"n_annotators": 30, "feedback": 10}, "student-teacher[ratio=0.8]", 0.690, 0.755),
    "T5": ({"n_annotators": 100, "feedback": 10}, "discrete-difficulty[ratio=0.35]", 0.790, 0.810),
}


@pytest.mark.numeric
@pytest.mark.parametrize("table", PUBLISHED)
def test_published_simulations(table):
    options, strategy, naive_soft, dawid_skene = PUBLISHED[table]
    made = simulate(strategy, n_items=200, n_classes=5, seed=0, **options)
    for name, printed in (("NaiveSoft", naive_soft), ("DS", dawid_skene)):
        result = aggregate(made.annotations, name)
        assert round(float(np.mean(result.label == made.truth)), 6) == printed


def test_dawid_skene_recovers_the_confusion_it_was_drawn_from():
    made = simulate(
        "independent-confusion", n_items=2000, n_annotators=30, n_classes=4, feedback=10, seed=1
    )
    result = aggregate(made.annotations, "dawid-skene")
    assert np.abs(result.params.confusion - made.crowd.confusion).mean() < 0.05
    better = np.mean(result.label == made.truth) - np.mean(
        aggregate(made.annotations, "majority").label == made.truth
    )
    assert better > 0.05


def test_an_adversary_is_used_the_other_way_round():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    accuracy = [0.7, 0.7, 0.7, 0.05]
    right = rng.random((300, 4)) < accuracy
    annotations = Annotations.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None]))
    result = aggregate(annotations, "dawid-skene")
    assert result.quality[3] < 0.15
    assert np.mean(result.label == truth) > 0.9


def test_two_perfect_annotators():
    labels = np.array([0, 0, 1, 2, 2, 2])
    result = aggregate(
        Annotations.from_matrix(np.stack([labels, labels], axis=1)), MAXIMUM_LIKELIHOOD
    )
    assert result.label.tolist() == labels.tolist()
    np.testing.assert_allclose(result.params.confusion, [np.eye(3)] * 2, atol=1e-12)
    shares = np.bincount(labels) / 6
    assert result.trace[-1] == pytest.approx((6 * shares * np.log(shares)).sum())


def test_every_item_twice_doubles_the_evidence_and_changes_nothing_else():
    annotations = simulate(
        "independent-confusion", n_items=60, n_annotators=8, n_classes=3, feedback=5
    ).annotations
    twice = Annotations.from_codes(
        np.concatenate([annotations.item, annotations.item.astype(int) + 60]),
        np.tile(annotations.annotator, 2),
        np.tile(annotations.label, 2),
        items=120,
        annotators=8,
        classes=3,
    )
    fit = "dawid-skene[smoothing=0,tol=0,max_iter=20]"
    once, double = aggregate(annotations, fit), aggregate(twice, fit)
    np.testing.assert_allclose(double.trace, 2 * np.array(once.trace))
    np.testing.assert_allclose(double.params.confusion, once.params.confusion, atol=1e-9)
    np.testing.assert_allclose(double.posterior[:60], once.posterior, atol=1e-9)


def test_gold_teaches():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    flipped = np.where(rng.random((200, 3)) < 0.9, 1 - truth[:, None], truth[:, None])
    annotations = Annotations.from_matrix(flipped)
    gold = {str(item): int(truth[item]) for item in range(120)}
    blind, taught = (
        aggregate(annotations, "dawid-skene"),
        aggregate(annotations, "dawid-skene", gold=gold),
    )
    assert np.mean(blind.label[120:] == truth[120:]) < 0.2
    assert np.mean(taught.label[120:] == truth[120:]) > 0.8


def test_restarts_differ_and_the_best_is_kept():
    annotations = simulate(
        "independent-confusion", n_items=40, n_annotators=10, n_classes=5, feedback=3, seed=5
    ).annotations
    one, many = (
        aggregate(annotations, "dawid-skene"),
        aggregate(annotations, "dawid-skene[restarts=10]", seed=1),
    )
    assert many.trace[-1] > one.trace[-1]
    again = aggregate(annotations, "dawid-skene[restarts=10]", seed=1)
    np.testing.assert_array_equal(many.posterior, again.posterior)


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    annotations = simulate(
        "independent-confusion", n_items=200, n_annotators=10, n_classes=3, feedback=5
    ).annotations
    whole = aggregate(annotations, "dawid-skene")
    again = aggregate(annotations, "dawid-skene", start=whole)
    assert len(again.trace) < len(whole.trace) / 2
    assert again.trace[0] >= whole.trace[-1] - 1e-9
    earlier = aggregate(annotations.subset(items=annotations.items[:150]), "dawid-skene")
    assert aggregate(annotations, "dawid-skene", start=earlier).trace[0] > whole.trace[0]


def test_what_did_not_converge_says_so():
    annotations = simulate(
        "independent-confusion", n_items=200, n_annotators=10, n_classes=3, feedback=5
    ).annotations
    assert not aggregate(annotations, "dawid-skene[max_iter=2]").converged
    assert "not converged" in repr(aggregate(annotations, "dawid-skene[max_iter=2]"))
    assert aggregate(annotations, "dawid-skene").converged


def test_progress_is_reported_every_iteration():
    seen = []
    result = aggregate(
        relation([("a", "x", "0"), ("a", "y", "1"), ("b", "x", "1")]),
        "dawid-skene",
        progress=lambda done, objective: seen.append((done, objective)),
    )
    assert seen == list(enumerate(result.trace, start=1))


TIED = [("a", "x", "0"), ("a", "y", "1"), ("b", "x", "1"), ("b", "y", "1"), ("c", "x", "2")]


@pytest.mark.parametrize(
    ("ties", "label", "posterior"),
    [
        ("first", "0", [0.5, 0.5, 0]),
        ("abstain", None, [0.5, 0.5, 0]),
        ("prior", "1", [0.5, 0.5, 0]),
        ("all", "0", [0.5, 0.5, 0]),
    ],
)
def test_ties_are_decided_as_set(ties, label, posterior):
    result = Majority(ties=ties).fit(relation(TIED))
    assert result.labels.tolist() == [label, "1", "2"]
    assert result.posterior[0].tolist() == posterior


def test_all_splits_the_posterior_over_the_leading_classes_only():
    rows = [("a", who, label) for who, label in zip("vwxyz", "00112", strict=True)]
    assert Majority(ties="all").fit(relation(rows)).posterior.tolist() == [[0.5, 0.5, 0]]
    assert Majority().fit(relation(rows)).posterior.tolist() == [[0.4, 0.4, 0.2]]


def test_random_ties_follow_the_seed_are_fair_and_do_not_look_at_other_items():
    rows = [
        (f"{item:03}", who, label) for item in range(400) for who, label in (("x", "0"), ("y", "1"))
    ]
    drawn = Majority().fit(relation(rows)).label
    assert 150 < drawn.sum() < 250
    assert drawn.tolist() == Majority().fit(relation(rows[::-1])).label.tolist()
    assert drawn.tolist() != Majority().fit(relation(rows), seed=1).label.tolist()
    decided = [*rows, ("000", "z", "1")]
    assert Majority().fit(relation(decided)).label[1:].tolist() == drawn[1:].tolist()


def test_bad_gold_is_refused():
    annotations = relation(TIED)
    with pytest.raises(
        DataError, match="gold says '7' for item 'a', which is not among the classes 0, 1, 2"
    ):
        aggregate(annotations, "majority", gold={"a": 7})
    with pytest.raises(DataError, match="for none of the annotated items"):
        aggregate(annotations, "majority", gold={"z": 1})


def test_confusion_matrices_that_cannot_fit_are_refused_before_they_are_tried():
    annotations = Annotations.from_codes([0], [0], [0], items=1, annotators=10**6, classes=10**5)
    with pytest.raises(MethodError, match="GiB for 1000000 annotators and 100000 classes"):
        DawidSkene().fit(annotations)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999, 1])
def test_a_credible_set_is_the_smallest_that_holds_the_probability(level):
    made = simulate("one-coin", n_items=200, n_annotators=9, n_classes=4, feedback=3)
    result = aggregate(made.annotations, "naive-soft")
    inside = result.credible_set(level)
    for posterior, chosen in zip(result.posterior, inside, strict=True):
        fewest = min(
            size for size in range(1, 5) if sum(sorted(posterior)[-size:]) >= level - 1e-12
        )
        assert chosen.sum() == fewest
        assert posterior[chosen].sum() == pytest.approx(sum(sorted(posterior)[-fewest:]))


def test_credible_sets_hold_the_truth_as_often_as_they_say():
    made = simulate("one-coin", n_items=2000, n_annotators=20, n_classes=4, feedback=3)
    result = aggregate(made.annotations, "dawid-skene-map")
    true = [
        made.annotations.classes.tolist().index(made.truths[item])
        for item in made.annotations.items
    ]
    inside = result.credible_set(0.9)
    assert inside[np.arange(2000), true].mean() > 0.88
    assert inside.sum(axis=1).mean() < 2


@pytest.mark.parametrize("level", [0, -1, 1.5])
def test_a_level_that_cannot_be_is_refused(level):
    result = aggregate(relation([("a", "x", "0")]), "majority")
    with pytest.raises(OptionError, match="confidence = "):
        result.credible_set(level)
