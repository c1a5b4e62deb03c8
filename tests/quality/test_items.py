"""Scores of items: against plain loops, and causes against crowds in which they are known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import rankdata

from dissensus import Annotations, DataError, aggregate, simulate
from dissensus.quality.items import (
    CAUSES,
    CauseProbabilities,
    _causes,
    cause_probabilities,
    item_scores,
    vote_entropy,
)

from ..support import annotation_rows, relation, rows_of, shared, shared_truth

CLASSES = "012"


def known(seed, *, n_classes=5, per_item=10, ambiguous=0.1, hard=0.1, spammers=0.2, n_items=1000):
    """Return labels, what every item is, and who guesses.

    On an ambiguous item either of two classes is seen, evenly. On a hard one four in five see
    nothing. Those who do not guess name what they see with probability 0.8 to 0.95.
    """
    rng = np.random.default_rng(seed)
    n_annotators = 40
    kind = rng.choice(
        ["clear", "ambiguous", "hard"], p=[1 - ambiguous - hard, ambiguous, hard], size=n_items
    )
    truth = rng.integers(n_classes, size=n_items)
    other = (truth + rng.integers(1, n_classes, size=n_items)) % n_classes
    right = rng.uniform(0.8, 0.95, size=n_annotators)
    guesses = np.arange(n_annotators) < spammers * n_annotators
    right[guesses] = 1 / n_classes
    item = np.repeat(np.arange(n_items), per_item)
    annotator = rng.permuted(np.tile(np.arange(n_annotators), (n_items, 1)), axis=1)
    annotator = annotator[:, :per_item].ravel()
    split = (kind[item] == "ambiguous") & (rng.random(len(item)) < 0.5)
    seen = np.where(split, other[item], truth[item])
    wrong = (seen + rng.integers(1, n_classes, size=len(item))) % n_classes
    label = np.where(rng.random(len(item)) < right[annotator], seen, wrong)
    blind = (kind[item] == "hard") & (rng.random(len(item)) < 0.8)
    label = np.where(blind, rng.integers(n_classes, size=len(item)), label)
    annotations = Annotations.from_codes(
        item, annotator, label, items=n_items, annotators=n_annotators, classes=n_classes
    )
    return annotations, kind, guesses


def share_of(scores, cause, among):
    return float((scores.cause[among] == cause).mean())


@given(annotation_rows())
def test_scores_of_votes_equal_plain_loops(rows):
    annotations = relation(rows, items="abcdef", classes=CLASSES)
    scores = item_scores(annotations, aggregate(annotations, "majority"), difficulty=False)
    corrected = vote_entropy(annotations, corrected=True)
    normalized = vote_entropy(annotations, normalized=True)
    for position, item in enumerate(annotations.items.tolist()):
        labels = [label for i, _, label in rows if i == item]
        n = len(labels)
        assert scores.n_labels[position] == n
        counts = sorted((labels.count(c) for c in CLASSES), reverse=True)
        if n == 0:
            assert math.isnan(scores.margin[position])
            assert scores.cause[position] == "no label"
        else:
            assert scores.margin[position] == pytest.approx((counts[0] - counts[1]) / n)
        if n < 2:
            for score in (scores.vote_entropy, scores.agreement, scores.item_to_blame, corrected):
                assert math.isnan(score[position])
            continue
        entropy = -sum(c / n * math.log(c / n) for c in counts if c)
        assert scores.vote_entropy[position] == pytest.approx(entropy)
        assert normalized[position] == pytest.approx(entropy / math.log(3))
        hidden = (sum(c > 0 for c in counts) - 1) / (2 * n)
        assert corrected[position] == pytest.approx(min(entropy + hidden, math.log(3)))
        pairs = [labels[a] == labels[b] for a in range(n) for b in range(n) if a != b]
        assert scores.agreement[position] == pytest.approx(np.mean(pairs))


def test_entropy_is_nothing_when_all_agree_and_full_when_all_differ():
    annotations = Annotations.from_columns("aaabbb", "xyzxyz", "000012")
    np.testing.assert_allclose(vote_entropy(annotations), [0, math.log(3)], atol=1e-15)
    np.testing.assert_allclose(vote_entropy(annotations, normalized=True, corrected=True), [0, 1])


def test_scores_of_the_posterior_are_those_of_the_result():
    annotations, *_ = known(0, n_items=80)
    result = aggregate(annotations, "bcc")
    scores = item_scores(annotations, result, difficulty=False)
    np.testing.assert_array_equal(scores.confidence, result.confidence)
    p = result.probabilities
    np.testing.assert_allclose(
        scores.posterior_entropy, -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1), atol=1e-12
    )
    assert np.isnan(scores.difficulty).all()


def test_difficulty_is_that_of_glad():
    annotations = simulate("glad", n_items=60, n_annotators=12, n_classes=3).annotations
    glad = aggregate(annotations, "glad")
    np.testing.assert_array_equal(item_scores(annotations, glad).difficulty, glad.params.difficulty)
    np.testing.assert_allclose(item_scores(annotations).difficulty, glad.params.difficulty)


@pytest.mark.parametrize("method", ["dawid-skene-map", "majority", "one-coin"])
def test_surprise_equals_plain_loops(method):
    from dissensus import aggregators
    from dissensus.aggregation.held_out import confusion_from_posterior

    annotations, *_ = known(3, n_items=30, n_classes=3, per_item=4)
    result = aggregate(annotations, method)
    confusion = aggregators.create(method).confusion(result.params)
    confusion = (
        confusion_from_posterior(result.answers, result.posterior)
        if confusion is None
        else confusion
    )
    expected = []
    for item in range(annotations.n_items):
        true = result.posterior[item].argmax()
        excess = variance = 0.0
        for a, g in zip(
            annotations.annotator[annotations.item == item],
            annotations.label[annotations.item == item],
            strict=True,
        ):
            p = confusion[a, true]
            usual = -(p * np.log(p)).sum()
            excess += -math.log(p[g]) - usual
            variance += (p * np.log(p) ** 2).sum() - usual**2
        expected.append(excess / math.sqrt(variance))
    scores = item_scores(annotations, result, difficulty=False)
    np.testing.assert_allclose(scores.surprise, expected, rtol=1e-6)


def test_surprise_is_standard_under_the_crowd_itself():
    """Labels drawn from the very matrices have surprise of mean 0 and deviation 1, about."""
    annotations = simulate(
        "independent-confusion", n_items=2000, n_annotators=20, n_classes=3, seed=5
    ).annotations
    surprise = item_scores(annotations, difficulty=False).surprise
    assert abs(surprise.mean()) < 0.1
    assert abs(surprise.std() - 1) < 0.1


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_causes_are_found_where_they_are_known(seed):
    annotations, kind, _ = known(seed, spammers=0)
    scores = item_scores(annotations, difficulty=False)
    assert share_of(scores, "clear", kind == "clear") > 0.93
    assert share_of(scores, "ambiguous", kind == "ambiguous") > 0.6
    assert share_of(scores, "hard", kind == "hard") > 0.75
    assert scores.causes["somebody is unreliable"] == 0
    odd = kind != "clear"
    rank = rankdata(scores.item_to_blame)
    above = rank[odd].sum() - odd.sum() * (odd.sum() + 1) / 2
    assert above / (odd.sum() * (~odd).sum()) > 0.95  # area under the curve


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_spammers_are_blamed_and_not_the_items(seed):
    drawn = simulate(
        "hammer-spammer[ratio=0.4]",
        n_items=500,
        n_annotators=30,
        n_classes=5,
        feedback=8,
        seed=seed,
    )
    scores = item_scores(drawn.annotations, difficulty=False)
    split = (drawn.annotations.votes() > 0).sum(axis=1) > 1
    assert split.mean() > 0.9
    assert share_of(scores, "somebody is unreliable", split) > 0.99
    assert share_of(scores, "clear", ~split) == 1


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_crowd_without_odd_items_has_none(seed):
    annotations, _, guesses = known(seed, ambiguous=0, hard=0)
    scores = item_scores(annotations, difficulty=False)
    assert scores.causes["ambiguous"] + scores.causes["hard"] < 0.01 * annotations.n_items
    by_guess = guesses[annotations.annotator].astype(float)
    blamed = scores.cause == "somebody is unreliable"
    spam = np.bincount(annotations.item, by_guess) / scores.n_labels
    assert spam[blamed].mean() > spam[~blamed].mean()


@pytest.mark.parametrize(
    ("labels", "confidence", "probability", "cause"),
    [
        ("0000", 0.99, (0.2, 0.5, 0.3), "clear"),  # nobody disagrees
        ("0010", 0.99, (0.9, 0.06, 0.04), "clear"),  # y slips, and is trusted
        ("0010", 0.80, (0.9, 0.06, 0.04), "ambiguous"),  # the consensus is uncertain
        ("0010", 0.80, (0.9, 0.04, 0.06), "hard"),
        ("0010", 0.99, (0.4, 0.35, 0.25), "ambiguous"),  # that explains the labels better
        ("0010", 0.99, (0.4, 0.25, 0.35), "hard"),
        ("0001", 0.99, (0.9, 0.06, 0.04), "somebody is unreliable"),  # only z, who guesses
        ("0001", 0.80, (0.9, 0.06, 0.04), "somebody is unreliable"),
        ("0001", 0.80, (0.4, 0.25, 0.35), "hard"),  # but the item explains it better
    ],
)
def test_a_cause_follows_from_its_probability_confidence_and_reliability(
    labels, confidence, probability, cause
):
    """w, x and y are right nine times in ten, z guesses."""
    annotations = relation(
        [("a", *pair) for pair in zip("wxyz", labels, strict=True)], classes="01"
    )
    posterior = np.array([[confidence, 1 - confidence]])
    result = replace(aggregate(annotations, "majority"), posterior=posterior, label=np.array([0]))
    found = CauseProbabilities(np.array([probability]), np.array([0.9, 0.9, 0.9, 0.5]), ())
    assert CAUSES[_causes(annotations, result, found)[0]] == cause


@pytest.mark.parametrize("seed", [11, 12])
def test_difficulties_that_were_drawn_are_found(seed):
    drawn = simulate(
        "discrete-difficulty[ratio=0.7,ratio_diff=3,random=0.1]",
        n_items=1000,
        n_annotators=30,
        n_classes=5,
        feedback=8,
        seed=seed,
    )
    scores = item_scores(drawn.annotations, difficulty=False)
    difficulty = drawn.extras["difficulties"]
    assert share_of(scores, "clear", difficulty == "easy") == 1
    assert share_of(scores, "hard", difficulty == "random") > 0.9


@pytest.mark.parametrize("name", ["bluebirds", "rte", "d_possent", "weather_amt", "medrel_treat"])
def test_on_real_data_labels_of_odd_items_are_wrong_more_often(name):
    annotations, truth = shared(name), shared_truth(name)
    scores = item_scores(annotations, difficulty=False)
    labels = aggregate(annotations, "majority").labels.tolist()
    gold = [truth.get(item) for item in annotations.items.tolist()]
    scored = np.array([one is not None for one in gold])
    right = np.array([one == label for one, label in zip(gold, labels, strict=True)])
    odd = np.isin(scores.cause.tolist(), ["ambiguous", "hard"])
    assert right[scored & ~odd].mean() - right[scored & odd].mean() > 0.15


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_objective_of_the_causes_never_falls(n_classes):
    annotations, *_ = known(21, n_items=300, n_classes=n_classes, per_item=5)
    right = np.full(annotations.n_annotators, 0.6)
    trace = cause_probabilities(annotations, right, np.full(n_classes, 1 / n_classes)).trace
    assert len(trace) > 3
    assert np.diff(trace).min() > -1e-8


def test_causes_of_large_data_are_those_of_a_full_fit(monkeypatch):
    annotations, *_ = known(21, n_items=8000, n_classes=3, per_item=5)
    whole = item_scores(annotations, difficulty=False)
    monkeypatch.setattr("dissensus.quality.items._MAX_LABELS", 20_000)
    part = item_scores(annotations, difficulty=False)
    assert (part.cause == whole.cause).mean() > 0.99
    np.testing.assert_allclose(part.item_to_blame, whole.item_to_blame, atol=0.1)


def test_an_em_iteration_equals_plain_loops():
    """One iteration, item by item, over every class and share."""
    from dissensus.quality import items as causes

    annotations, *_ = known(4, n_items=12, n_classes=3, per_item=4)
    rng = np.random.default_rng(0)
    accuracy = rng.uniform(0.4, 0.9, size=annotations.n_annotators)
    prior = np.array([0.5, 0.3, 0.2])
    context = causes._fit_context(annotations, accuracy)
    posterior = causes._e_step(context, accuracy, prior, 0.2)
    evidence, named, perceived = 0.0, np.full(len(accuracy), 3.2), np.full(len(accuracy), 4.0)
    for item in range(annotations.n_items):
        annotator = annotations.annotator[annotations.item == item]
        given_labels = annotations.label[annotations.item == item]
        support = np.zeros(3)
        for a, g in zip(annotator, given_labels, strict=True):
            support[g] += max((accuracy[a] - 1 / 3) / (2 / 3), 0.01)
        s, t = np.argsort(-support, kind="stable")[:2]

        def says(a, g, seen):
            return accuracy[a] if g == seen else (1 - accuracy[a]) / 2

        pairs = list(zip(annotator, given_labels, strict=True))
        clear = sum(0.8 * prior[k] * math.prod(says(a, g, k) for a, g in pairs) for k in range(3))
        hard = sum(
            0.1 / 3 * prior[k] * math.prod((1 - d) * says(a, g, k) + d / 3 for a, g in pairs)
            for k in range(3)
            for d in (1 / 6, 1 / 2, 5 / 6)
        )
        split = sum(
            0.1 / 3 / 3 * math.prod(h * says(a, g, s) + (1 - h) * says(a, g, t) for a, g in pairs)
            for h in (1 / 3, 1 / 2, 2 / 3)
        )
        total = clear + hard + split
        evidence += math.log(total)
        assert posterior.one_class[0, item].sum() == pytest.approx(clear / total)
        assert posterior.one_class[1:, item].sum() == pytest.approx(hard / total)
        assert posterior.two_classes[:, item].sum() == pytest.approx(split / total)
        for a, g in pairs:
            for k in range(3):
                for d in (0, 1 / 6, 1 / 2, 5 / 6):
                    common = 0.1 / 3 if d else 0.8
                    probability = math.prod((1 - d) * says(b, h, k) + d / 3 for b, h in pairs)
                    weight = common * prior[k] * probability / total
                    weight *= (1 - d) * says(a, g, k) / ((1 - d) * says(a, g, k) + d / 3)
                    named[a] += weight * (g == k)
                    perceived[a] += weight
            for h in (1 / 3, 1 / 2, 2 / 3):
                perceived_by = {b: (h * says(b, x, s), (1 - h) * says(b, x, t)) for b, x in pairs}
                weight = 0.1 / 9 * math.prod(map(sum, perceived_by.values())) / total
                perceived[a] += weight
                first, second = perceived_by[a]
                hit = first * (g == s) + second * (g == t)
                named[a] += weight * hit / (first + second)
    assert posterior.log_evidence == pytest.approx(evidence)
    np.testing.assert_allclose(
        causes._update_accuracy(context, accuracy, posterior), named / perceived
    )


@given(annotation_rows())
def test_order_and_names_of_annotators_do_not_matter(rows):
    annotations = relation(rows, classes=CLASSES)
    turned = relation([(i, f"new {a}", label) for i, a, label in rows[::-1]], classes=CLASSES)
    here, there = item_scores(annotations), item_scores(turned)
    for name, values in here.table().items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, there.table()[name], atol=1e-6)
    assert here.cause.tolist() == there.cause.tolist()


def test_a_table_holds_names_and_a_dictionary_no_nan():
    annotations = relation([("a", "x", "0"), ("a", "y", "1"), ("b", "x", "1")], items="abc")
    scores = item_scores(annotations)
    table = scores.table()
    assert list(table)[:3] == ["item", "n_labels", "vote_entropy"]
    assert {len(values) for values in table.values()} == {3}
    plain = scores.as_dict()
    assert plain["item"] == ["a", "b", "c"]
    assert plain["vote_entropy"][1] is None
    assert plain["cause"][1:] == ["one label", "no label"]
    assert sum(scores.causes.values()) == 3
    assert list(scores.causes) == list(CAUSES)
    assert repr(scores).startswith("<ItemScores of 3 items: ")


def test_one_class_and_no_labels_are_no_trouble():
    one = item_scores(relation([("a", "x", "0"), ("a", "y", "0")]))
    assert one.cause.tolist() == ["clear"]
    assert one.margin.tolist() == [1.0]
    none = item_scores(relation([], items="ab", classes="01"))
    assert none.cause.tolist() == ["no label", "no label"]


def test_a_result_about_other_annotations_is_refused():
    annotations = relation([("a", "x", "0"), ("a", "y", "1")])
    other = aggregate(relation([("a", "x", "0"), ("a", "y", "0")], classes="01"), "majority")
    with pytest.raises(DataError, match="belongs to other annotations"):
        item_scores(annotations, other)
    again = Annotations.from_columns(*zip(*rows_of(annotations), strict=True))
    assert item_scores(
        annotations, aggregate(again, "majority"), difficulty=False
    ).n_labels.tolist() == [2]
