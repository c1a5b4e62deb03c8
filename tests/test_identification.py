import json
from collections import Counter, defaultdict
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from dissensus import (
    Annotations,
    DataError,
    MethodError,
    OptionError,
    aggregate,
    aggregators,
    identify,
    simulate,
)
from dissensus.identification.behaviour import annotator_behaviour
from dissensus.identification.cleaning import clean, read_rule
from dissensus.identification.copying import copies, discoveries
from dissensus.identification.leave_one_out import has_other_labels, leave_one_out
from dissensus.identification.proportions import difference_p_value, proportion
from dissensus.identification.score_context import ScoreContext
from dissensus.identification.scores import SCORES, find_score, score
from dissensus.identification.spam import (
    mutual_information,
    spam_interval,
    spam_moments,
    spam_score,
    trace,
)
from dissensus.result import gold_codes
from tests.support import annotation_rows, relation, rows_of, run, shared, shared_truth


def crowd(strategy="hammer-spammer[ratio=0.4]", **options):
    given_options = {"n_items": 150, "n_annotators": 10, "n_classes": 3, "feedback": 5, **options}
    return simulate(strategy, **given_options)


def quick(annotations, **options):
    return identify(annotations, models=False, copying=False, **options)


def auc(value, good):
    """Return how probably somebody good has a higher value than somebody who is not."""
    above = value[good][:, None] - value[~good][None, :]
    return float(((above > 0) + (above == 0) / 2).mean())


# The spam score


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_spam_score_is_the_distance_to_the_nearest_spammer(n_classes):
    rng = np.random.default_rng(n_classes)
    confusion = rng.dirichlet(np.ones(n_classes), (20, n_classes))
    found = spam_score(confusion)
    for one, value in zip(confusion, found, strict=True):
        pairs = sum(((one[t] - one[u]) ** 2).sum() for t, u in combinations(range(n_classes), 2))
        assert value == pytest.approx(pairs / (n_classes * (n_classes - 1)), abs=1e-12)
        nearest = ((one - one.mean(axis=0)) ** 2).sum() / (n_classes - 1)
        assert value == pytest.approx(nearest, abs=1e-12)
        for other in rng.dirichlet(np.ones(n_classes), 50):
            assert ((one - other) ** 2).sum() / (n_classes - 1) >= value - 1e-12
    order = rng.permutation(n_classes)
    np.testing.assert_allclose(spam_score(confusion[:, order][:, :, order]), found, atol=1e-12)
    np.testing.assert_allclose(spam_score(confusion, squared=False) ** 2, found, atol=1e-12)


def test_hammers_score_one_adversaries_too_and_spammers_nothing():
    eye = np.eye(4)
    marginals = np.tile([0.1, 0.2, 0.3, 0.4], (4, 1))
    found = spam_score(np.stack([eye, eye[[1, 2, 3, 0]], marginals]))
    np.testing.assert_allclose(found, [1, 1, 0], atol=1e-12)
    assert np.isnan(spam_score(np.ones((1, 1, 1)))).all()
    sensitivity, specificity = 0.9, 0.6
    binary = np.array([[[sensitivity, 1 - sensitivity], [1 - specificity, specificity]]])
    assert spam_score(binary)[0] == pytest.approx((sensitivity + specificity - 1) ** 2, abs=1e-12)


def test_the_trace_is_shown_three_ways():
    confusion = np.array([[[0.9, 0.1], [0.4, 0.6]]])
    assert trace(confusion)[0] == pytest.approx(1.5)
    assert trace(confusion, normalized=True)[0] == pytest.approx(0.75)
    assert trace(confusion, np.array([0.8, 0.2]))[0] == pytest.approx(0.84)


def test_mutual_information_is_what_the_definition_says():
    rng = np.random.default_rng(0)
    prior, confusion = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), (4, 3))
    for one, value in zip(confusion, mutual_information(confusion, prior), strict=True):
        joint = prior[:, None] * one
        alone = joint.sum(axis=0)
        expected = sum(
            joint[t, g] * np.log(joint[t, g] / (prior[t] * alone[g]))
            for t in range(3)
            for g in range(3)
        )
        assert value == pytest.approx(expected, abs=1e-12)
    eye = np.eye(3)
    assert mutual_information(eye[None], np.full(3, 1 / 3))[0] == pytest.approx(np.log(3))
    assert mutual_information(eye[None, [1, 2, 0]], np.full(3, 1 / 3))[0] == pytest.approx(
        np.log(3)
    )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_moments_of_the_spam_score_are_those_of_draws(n_classes):
    rng = np.random.default_rng(1)
    rows = rng.gamma(1.0, 6.0, (3, n_classes, n_classes)) + 0.2
    mean, variance = spam_moments(rows)
    drawn = rng.standard_gamma(rows, (60_000, *rows.shape))
    drawn /= drawn.sum(axis=-1, keepdims=True)
    value = spam_score(drawn.reshape(-1, n_classes, n_classes)).reshape(-1, 3)
    np.testing.assert_allclose(mean, value.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(variance, value.var(axis=0), rtol=0.05)


def test_the_interval_of_the_spam_score_is_close_to_that_of_draws():
    rng = np.random.default_rng(2)
    size = np.array([1, 5, 20, 100.0])[:, None, None]
    counts = np.concatenate(
        [np.eye(4) * size, np.full((4, 4), 0.25) * size, rng.dirichlet(np.ones(4), (4, 4)) * size]
    )
    exact = spam_interval(counts)
    matrices = rng.standard_gamma(counts + 0.25, (4000, *counts.shape))
    matrices /= np.maximum(matrices.sum(axis=-1, keepdims=True), 1e-300)
    score = spam_score(matrices.reshape(-1, 4, 4)).reshape(4000, -1)
    sampled = (score.mean(axis=0), *np.quantile(score, [0.05, 0.95], axis=0))
    for one, other in zip(exact, sampled, strict=True):
        np.testing.assert_allclose(one, other, atol=0.03)
    assert (exact.low <= exact.mean).all()
    assert (exact.mean <= exact.high).all()
    assert np.isnan(spam_interval(np.ones((2, 1, 1))).high).all()


@pytest.mark.parametrize(("n_classes", "most"), [(2, 0.03), (4, 0.08)])
def test_fitted_hammers_and_spammers_score_as_they_did_in_our_notes(n_classes, most):
    simulated = crowd(
        "hammer-spammer[ratio=0.5]", n_items=300, n_annotators=20, n_classes=n_classes, feedback=7
    )
    result = aggregate(simulated.annotations, "dawid-skene")
    value = spam_score(result.params.confusion)
    assert (value[:10] > 0.97).all()
    assert (value[10:] < most).all()


@pytest.mark.parametrize("n_classes", [2, 4, 10])
def test_spammers_are_ranked_below_hammers_from_ten_labels_on(n_classes):
    found = []
    for seed in range(3):
        simulated = crowd(
            n_items=200, n_annotators=100, n_classes=n_classes, workerload=10, seed=seed
        )
        assert simulated.annotations.labels_per_annotator.max() <= 10
        found.append(auc(quick(simulated.annotations).spam_score, np.arange(100) < 60))
    assert np.mean(found) >= 0.98


def test_the_spam_score_ranks_students_and_teachers_better_than_agreement_does():
    gain = []
    for seed in range(5):
        simulated = crowd(
            "student-teacher[ratio=0.8,copy_prob=0.8]",
            n_items=400,
            n_annotators=30,
            n_classes=5,
            feedback=10,
            seed=seed,
            fast=True,
        )
        found, true = quick(simulated.annotations), spam_score(simulated.crowd.confusion)
        gain.append(
            spearmanr(found.spam_score, true)[0] - spearmanr(found.behaviour.agreement, true)[0]
        )
    assert np.mean(gain) > 0.1


# Leave one out


@pytest.mark.parametrize("method", ["dawid-skene", "bcc", "mace[method=em]", "glad", "one-coin"])
def test_leaving_somebody_out_is_exact_under_the_fitted_crowd(method):
    """The posterior without an annotator is that of the same model without their labels."""
    annotations = crowd("independent-confusion", n_items=40).annotations
    result = aggregate(annotations, method)
    fitted = leave_one_out(result)
    found = fitted.without(slice(0, len(fitted.annotations)))
    for person in range(annotations.n_annotators):
        mine = annotations.annotator == person
        rest = annotations.keep(~mine)
        if method == "glad":  # predicting would forget how hard the items are
            probabilities = aggregators.create(method).label_probabilities(
                result.params, rest.item, rest.annotator
            )
            logs = np.log(probabilities[np.arange(len(rest)), :, rest.label])
            joint = np.tile(np.log(result.params.prior), (annotations.n_items, 1))
            np.add.at(joint, rest.item, logs)
            posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
            posterior /= posterior.sum(axis=1, keepdims=True)
        else:
            posterior = result.predict(rest).posterior
        np.testing.assert_allclose(found[mine], posterior[annotations.item[mine]], atol=1e-8)


def test_leaving_somebody_out_survives_hundreds_of_labels_on_an_item():
    annotations = Annotations.from_matrix(np.tile([0, 1], (600, 1)).T)
    fitted = leave_one_out(aggregate(annotations, "dawid-skene"))
    posterior = fitted.without(slice(0, len(fitted.annotations)))
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1)


@settings(max_examples=30, deadline=None)
@given(rows=annotation_rows())
def test_under_votes_nobody_votes_for_themselves(rows):
    annotations = relation(rows)
    fitted = leave_one_out(aggregate(annotations, "naive-soft"))
    found = fitted.without(slice(0, len(fitted.annotations)))
    has_others = has_other_labels(annotations)
    all_rows = rows_of(annotations)
    for position, (item, annotator, _) in enumerate(all_rows):
        left = [label for i, a, label in all_rows if i == item and a != annotator]
        assert has_others[position] == bool(left)
        if left:
            votes = Counter(left)
            expected = [votes[name] / len(left) for name in annotations.classes.tolist()]
            np.testing.assert_allclose(found[position], expected, atol=1e-12)


def test_weights_of_votes_count_and_negative_ones_count_for_the_others():
    annotations = relation([("a", "x", "0"), ("a", "y", "1"), ("a", "z", "2")])
    fitted = aggregate(annotations, "wawa")
    params = fitted.params._replace(weight=np.array([3.0, 1.0, -2.0]))
    fitted = leave_one_out(type(fitted)(**{**vars(fitted), "params": params}))
    found = fitted.without(slice(0, 3))
    np.testing.assert_allclose(found[0], [2 / 5, 3 / 5, 0])
    np.testing.assert_allclose(found[2], [3 / 4, 1 / 4, 0])


def test_gold_stays_what_it_is():
    annotations = relation([("a", "x", "0"), ("a", "y", "0"), ("b", "x", "1")])
    gold = gold_codes(annotations, {"a": "1", "b": "1"})
    fitted = leave_one_out(aggregate(annotations, "dawid-skene", gold={"a": "1", "b": "1"}), gold)
    np.testing.assert_array_equal(fitted.without(slice(0, 3)), [[0, 1]] * 3)
    found = quick(annotations, gold={"a": "1", "b": "1"})
    assert found.accuracy.among.tolist() == [2, 1]
    assert found.accuracy.value.tolist() == [0.5, 0]
    assert found.gold.value.tolist() == [0.5, 0]


@settings(max_examples=25, deadline=None)
@given(rows=annotation_rows())
def test_accuracy_is_the_share_of_labels_that_most_of_the_others_gave(rows):
    annotations = relation(rows)
    found = quick(annotations, result=aggregate(annotations, "majority"))
    credit = defaultdict(list)
    for item, annotator, label in rows_of(annotations):
        left = Counter(x for i, a, x in rows_of(annotations) if i == item and a != annotator)
        if left:
            best = [name for name, votes in left.items() if votes == max(left.values())]
            credit[annotator].append((label in best) / len(best))
    for position, name in enumerate(annotations.annotators.tolist()):
        assert found.accuracy.among[position] == len(credit[name])
        if credit[name]:
            assert found.accuracy.value[position] == pytest.approx(np.mean(credit[name]))
        else:
            assert np.isnan(found.accuracy.value[position])


def test_bias_names_the_class_that_is_overused():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    annotations = Annotations.from_matrix(
        np.stack([truth, truth, truth, np.maximum(truth, 1)], axis=1)
    )
    found = quick(annotations)
    lazy = (truth == 0).mean()
    assert found.bias[3] == pytest.approx(lazy, abs=0.02)
    assert found.overused[3] == "1"
    assert found.table()["worst_class"][3] == "0"
    assert found.worst_recall[3] < 0.2


# Proportions and behaviour


def test_the_ends_of_an_interval_are_where_the_share_would_be_just_as_far():
    right, count = np.array([3.0, 0, 10, 50]), np.array([10.0, 10, 10, 60])
    found = proportion(right, count)
    for end in (found.low, found.high):
        inside = (end > 0) & (end < 1)
        away = np.abs(found.value - end) / np.sqrt(end * (1 - end) / count + 1e-300)
        np.testing.assert_allclose(away[inside], 1.959963984540054, rtol=1e-9)
    assert found.low[1] == 0
    assert found.high[2] == 1
    assert np.isnan(proportion(np.zeros(1), np.zeros(1)).low[0])


def test_shares_that_are_equal_seldom_seem_to_differ():
    rng = np.random.default_rng(4)
    right = rng.binomial(40, 0.8, (2, 20_000)).astype(float)
    p_value = difference_p_value(right, np.full((2, 20_000), 40.0))
    assert 0.025 < (p_value < 0.05).mean() < 0.06


@settings(max_examples=30, deadline=None)
@given(rows=annotation_rows(), data=st.data())
def test_behaviour_is_that_of_plain_counts(rows, data):
    times = data.draw(st.permutations(range(len(rows))))
    item, annotator, label = zip(*rows, strict=True)
    took = data.draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    annotations = Annotations.from_columns(
        item, annotator, label, time=np.array(times), duration=np.array(took, dtype=float)
    )
    found = annotator_behaviour(annotations)
    for position, name in enumerate(annotations.annotators.tolist()):
        mine = sorted(
            (time, x, i, seconds)
            for i, a, x, time, seconds in zip(item, annotator, label, times, took, strict=True)
            if a == name
        )
        longest, now = 1, 1
        for before, after in pairwise(mine):
            now = now + 1 if before[1] == after[1] else 1
            longest = max(longest, now)
        counts = Counter(x for _, x, _, _ in mine)
        met = [x == y for _, x, i, _ in mine for j, b, y in rows if i == j and b != name]
        assert found.labels[position] == len(mine)
        assert found.classes_used[position] == len(counts)
        assert found.top_share[position] == pytest.approx(max(counts.values()) / len(mine))
        assert found.longest_run[position] == longest
        assert found.seconds[position] == np.median([seconds for *_, seconds in mine])
        if met:
            assert found.agreement[position] == pytest.approx(np.mean(met))
        else:
            assert np.isnan(found.agreement[position])


def test_without_times_there_are_no_runs_and_no_drift():
    annotations = crowd().annotations
    found = quick(annotations)
    assert np.isnan(found.behaviour.longest_run).all()
    assert np.isnan(found.behaviour.seconds).all()
    assert np.isnan(found.drift).all()
    texts = Annotations.from_columns("ab", "xx", "01", time=["3/1/24", "12/1/23"])
    assert np.isnan(annotator_behaviour(texts).longest_run).all()


def test_accuracy_that_falls_over_time_is_reported():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 400)
    labels = np.stack([truth] * 4, axis=1)
    labels[200:, 3] = rng.integers(0, 2, 200)
    annotations = Annotations.from_matrix(labels)
    stamp = np.datetime64("2026-01-01") + annotations.item.astype("timedelta64[h]")
    annotations = Annotations(**{**vars(annotations), "columns": {"time": stamp}})
    found = quick(annotations)
    assert found.first_half[3] == 1
    assert found.second_half[3] < 0.65
    assert found.drift[3] < 1e-6
    assert (found.drift[:3] > 0.5).all()
    assert "100% right at first" in found.evidence[3]


# Verdicts


def test_hammers_spammers_adversaries_and_isolated_annotators_get_their_verdicts():
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 2, 300)
    labels = np.stack([truth] * 7, axis=1)
    labels[:, 3] = rng.integers(0, 2, 300)  # guesses
    labels[:, 4] = np.where(rng.random(300) < 0.9, 1 - truth, truth)  # misleads
    labels[:, 5] = np.where(rng.random(300) < 0.25, 1 - truth, truth)  # slips
    labels[4:, 6] = -1
    found = quick(Annotations.from_matrix(labels))
    assert found.verdict.tolist() == [
        *["expert"] * 3,
        "spammer",
        "adversarial",
        "careless",
        "too few labels to say",
    ]
    assert found.spam_score[4] > 0.5  # far from a spammer, yet wrong
    assert found.worst[0] == 4
    assert found.evidence[6].startswith("Right on 100% of 4 labels")


def test_who_always_says_the_common_class_is_no_expert():
    rng = np.random.default_rng(7)
    truth = (rng.random(600) < 0.08).astype(int)
    labels = np.stack([truth] * 5, axis=1)
    flip = rng.random((600, 4)) < 0.03
    labels[:, :4] = np.where(flip, 1 - labels[:, :4], labels[:, :4])
    labels[:, 4] = 0
    found = quick(Annotations.from_matrix(labels))
    assert found.accuracy.value[4] > 0.85
    assert found.verdict[4] in ("spammer", "too few labels to say")
    assert "says '0' 100% of the time" in found.evidence[4]
    assert not set(found.verdict[:4].tolist()) & {"spammer", "careless", "adversarial"}


def test_where_everybody_guesses_nobody_is_called_good():
    rng = np.random.default_rng(8)
    annotations = Annotations.from_matrix(rng.integers(0, 4, (30, 3)))
    found = quick(annotations, result=aggregate(annotations, "naive-soft"))
    assert not set(found.verdict.tolist()) & {"expert", "fine"}


def test_verdicts_follow_the_truth_on_real_data():
    annotations, truth = shared("bluebirds"), shared_truth("bluebirds")
    found = identify(annotations, models=False)
    known = gold_codes(annotations, truth)[annotations.item]
    right = (
        np.bincount(annotations.annotator, known == annotations.label)
        / annotations.labels_per_annotator
    )
    mean = {word: right[found.verdict == word].mean() for word in found.verdict_counts}
    assert mean["spammer"] < 0.55 < mean["fine"] < mean["expert"]
    assert not found.copies.flagged.any()


def test_models_and_communities_come_on_demand():
    simulated = crowd("community", n_items=300, n_annotators=20, feedback=10)
    found = identify(simulated.annotations, models=True, communities=3, copying=False)
    expected = aggregate(simulated.annotations, "glad").params.ability
    np.testing.assert_allclose(found.ability, expected)
    assert np.isfinite(found.competence).all()
    assert set(found.community.tolist()) <= {0, 1, 2}
    without = quick(simulated.annotations)
    assert np.isnan(without.ability).all()
    assert (without.community == -1).all()


def test_a_result_on_other_annotations_is_refused():
    with pytest.raises(DataError, match="other annotations"):
        identify(crowd().annotations, aggregate(crowd(seed=1).annotations, "majority"))
    with pytest.raises(OptionError, match="confidence = 2"):
        identify(crowd().annotations, confidence=2)


@settings(max_examples=25, deadline=None)
@given(rows=annotation_rows(most=40))
def test_every_annotator_gets_a_verdict_whatever_the_labels(rows):
    there, back = (identify(relation(order), models=False) for order in (rows, rows[::-1]))
    assert there.verdict.tolist() == back.verdict.tolist()
    assert len(there.evidence) == there.annotations.n_annotators
    summary = json.loads(json.dumps(there.as_dict(), allow_nan=False))
    assert {row["annotator"] for row in summary["annotators"]} == set(
        there.annotations.annotators.tolist()
    )
    for name, values in there.table().items():
        assert len(values) == there.annotations.n_annotators, name


# Copies


def families(simulated):
    """Return the teacher of everybody, teachers being their own."""
    family = np.arange(simulated.annotations.n_annotators)
    student, teacher = simulated.extras["student_teacher_association"].T
    family[student] = teacher
    return family


@pytest.mark.parametrize("ratio", [0.3, 0.7])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_students_who_copy_are_found(ratio, n_classes):
    """Precision counts students of one teacher as copies of each other, which they are."""
    right, flagged, found_direct, direct = 0, 0, 0, 0
    for seed in range(5):
        simulated = crowd(
            f"student-teacher[ratio={ratio},copy_prob=0.8]",
            n_items=100,
            n_annotators=20,
            n_classes=n_classes,
            feedback=None,
            seed=seed,
        )
        found, family = copies(simulated.annotations), families(simulated)
        assert (found.common == 100).all()
        same = family[found.one] == family[found.other]
        taught = same & ((family[found.one] == found.one) | (family[found.other] == found.other))
        right, flagged = right + found.flagged[same].sum(), flagged + found.flagged.sum()
        found_direct, direct = found_direct + found.flagged[taught].sum(), direct + taught.sum()
    assert right / flagged >= 0.9
    assert found_direct / direct >= 0.9


def test_a_clique_that_has_taken_over_the_model_is_still_found():
    """Seed 0 has six of twenty who copy one another, and the fitted model follows them."""
    simulated = crowd(
        "student-teacher[ratio=0.5,copy_prob=0.8]",
        n_items=100,
        n_annotators=20,
        n_classes=5,
        feedback=None,
        fast=True,
    )
    family = families(simulated)
    clique = np.bincount(family).argmax()
    assert (family == clique).sum() == 6
    assert (
        aggregate(simulated.annotations, "dawid-skene-map").label == simulated.truth
    ).mean() < 0.5
    found = copies(simulated.annotations)
    assert len(set(found.cluster[family == clique].tolist())) == 1
    assert (found.cluster[family == clique] >= 0).all()


def test_people_on_their_own_are_not_flagged():
    for seed in range(4):
        simulated = crowd(
            "independent-confusion", n_items=300, n_annotators=20, feedback=10, seed=seed
        )
        assert not copies(simulated.annotations).flagged.any()


def test_pairs_are_counted_as_one_by_one():
    simulated = crowd("student-teacher[ratio=0.5,copy_prob=0.5]", n_items=60)
    annotations = simulated.annotations.merge(
        relation([("0", "0", "1"), ("0", "0", "2")])
    )  # repeated: left out
    found = copies(annotations, min_common=5)
    given_once = defaultdict(dict)
    for item, annotator, label in rows_of(annotations):
        again = annotator in given_once[item]
        given_once[item][annotator] = None if again else label
    common = Counter()
    same = Counter()
    for labels in given_once.values():
        named = {a: x for a, x in labels.items() if x is not None}
        for one, other in combinations(sorted(named, key=int), 2):
            common[one, other] += 1
            same[one, other] += named[one] == named[other]
    shown = {
        (annotations.annotators[a], annotations.annotators[b]): (c, e)
        for a, b, c, e in zip(found.one, found.other, found.common, found.equal, strict=True)
    }
    assert shown == {pair: (n, same[pair]) for pair, n in common.items() if n >= 5}


def test_what_is_expected_of_a_pair_is_what_the_model_says():
    annotations = crowd(
        "independent-confusion", n_items=40, n_annotators=4, feedback=None
    ).annotations
    result = aggregate(annotations, "dawid-skene-map")
    found = copies(annotations, result)
    fitted = leave_one_out(result)
    matrices = fitted.comparison.counts + np.where(np.eye(3, dtype=bool), 0.7, 0.15)
    matrices /= matrices.sum(axis=2, keepdims=True)
    log_given = result.params.log_given.reshape(4, 3, 3)  # (annotator, given, true)
    answer = np.empty((annotations.n_items, 4), dtype=int)
    answer[annotations.item, annotations.annotator] = annotations.label
    for position, (a, b) in enumerate(zip(found.one, found.other, strict=True)):
        expected = variance = 0.0
        for row in answer:
            rest = sum(log_given[c, row[c]] for c in range(4) if c not in (a, b))
            posterior = np.exp(result.params.log_prior + rest)
            posterior /= posterior.sum()
            equal = posterior @ (matrices[a] * matrices[b]).sum(axis=1)
            expected, variance = expected + equal, variance + equal * (1 - equal)
        assert found.expected[position] == pytest.approx(expected)
        assert found.deviation[position] == pytest.approx(np.sqrt(variance))


def test_with_many_label_pairs_items_are_sampled():
    simulated = crowd("student-teacher[ratio=0.3,copy_prob=0.9]", n_items=400, feedback=None)
    found = copies(simulated.annotations, max_label_pairs=6000)
    assert 0 < found.sampled < 0.5
    assert found.common.max() < 300
    same = families(simulated)[found.one] == families(simulated)[found.other]
    assert same[found.flagged].all()


def test_the_false_discovery_rate_is_controlled():
    rng = np.random.default_rng(9)
    p_value = np.concatenate([rng.random(9000), rng.random(1000) * 1e-6])
    rejected = discoveries(p_value, 0.05)
    assert rejected[9000:].all()
    assert rejected[:9000].sum() / rejected.sum() < 0.08
    assert not discoveries(np.zeros(0), 0.05).any()


def test_two_annotators_need_an_item_in_common():
    with pytest.raises(OptionError, match="min_common = 0"):
        copies(crowd().annotations, min_common=0)
    assert len(copies(relation([("a", "x", "0"), ("b", "y", "1")])).pairs) == 0


# Cleaning


def test_rules_are_read_and_binds_more_tightly_than_or():
    rule = read_rule("a<1 or b >= -2.5e1 and item.cause == 'this or that' or c!=x y")
    assert [[tuple(one) for one in part] for part in rule] == [
        [("a", "<", "1")],
        [("b", ">=", "-2.5e1"), ("item.cause", "==", "this or that")],
        [("c", "!=", "x y")],
    ]


@pytest.mark.parametrize(
    "rule", ["", "spam_score", "spam_score < ", "< 3", "a < 1 and", "a = 1", "f(x) < 1", "1 < 2"]
)
def test_rules_that_cannot_be_read_are_refused(rule):
    with pytest.raises(OptionError, match="cannot read"):
        read_rule(rule)


def test_cleaning_drops_labels_by_rules_and_reports_changes():
    simulated = crowd(n_items=60)
    scores = quick(simulated.annotations)
    found = clean(simulated.annotations, ["verdict == spammer", "labels < 1"])
    bad = scores.verdict == "spammer"
    assert set(found.annotators.tolist()) == set(simulated.annotations.annotators[bad].tolist())
    np.testing.assert_array_equal(found.dropped, bad[simulated.annotations.annotator])
    before, after = found.before.labels, found.after.labels
    changed = [str(simulated.annotations.items[i]) for i in range(60) if before[i] != after[i]]
    assert [change.item for change in found.changes] == changed
    assert len(found.annotations) + found.dropped.sum() == len(simulated.annotations)
    assert found.after.annotations == found.annotations


def test_conditions_on_annotators_and_items_meet_in_labels():
    annotations = crowd(n_items=30).annotations
    found = clean(annotations, "annotator == 0 and item.item != 3")
    expected = (annotations.annotators[annotations.annotator] == "0") & (
        annotations.items[annotations.item] != "3"
    )
    np.testing.assert_array_equal(found.dropped, expected)


def test_nothing_holds_of_a_score_that_is_not_known():
    annotations = crowd(n_items=30).annotations
    for sign in ("<", ">", "!=", "=="):
        assert not clean(annotations, f"seconds {sign} 3").dropped.any()


def test_rules_that_make_no_sense_are_refused():
    annotations = crowd(n_items=30).annotations
    for rule, message in {
        "nothing < 1": "no column 'nothing'",
        "item.nothing < 1": "no column 'item.nothing'",
        "accuracy < good": "is a number",
        "verdict < spammer": "is a text",
        "labels >= 0": "leave no label",
    }.items():
        with pytest.raises(OptionError, match=message):
            clean(annotations, rule)


# Scores by name


@pytest.mark.parametrize("one", SCORES, ids=lambda one: one.name)
def test_every_score_has_a_value_for_every_name(one):
    annotations = crowd(n_items=40).annotations
    posterior = np.full((annotations.n_items, 3), 1 / 3)
    context = ScoreContext(annotations, probabilities=posterior)
    if one.trains:
        pytest.importorskip("torch", reason="networks need torch")
        gold = dict.fromkeys(annotations.items.tolist(), "0")
        context = ScoreContext(annotations, inputs=posterior, gold=gold, network={"epochs": 1})
    found = score(context, one.name.upper().replace("_", "-"))
    size = {"annotator": annotations.n_annotators, "item": annotations.n_items, "crowd": 1}[one.of]
    assert found.values.shape == (size,)
    assert sorted(found.order.tolist()) == list(range(size))
    for alias in one.aliases:
        assert find_score(alias) is one


def test_names_of_scores_are_all_different():
    names = [name for one in SCORES for name in (one.name, *one.aliases)]
    assert len(set(names)) == len(names)
    assert len({one.file for one in SCORES if one.file}) == sum(
        one.file is not None for one in SCORES
    )


def test_impossible_scores_are_refused_with_a_remedy():
    with pytest.raises(MethodError, match="did you mean spam_score"):
        find_score("spamscores")
    for name in (one.name for one in SCORES if one.trains):
        with pytest.raises(OptionError, match="--inputs"):
            score(crowd(n_items=20).annotations, name.upper())
    with pytest.raises(OptionError, match="--probabilities"):
        score(crowd(n_items=20).annotations, "crowdlab")
    with pytest.raises(DataError, match="confusion matrices"):
        score(ScoreContext(crowd(n_items=20).annotations, matrices=np.ones((1, 3, 3))), "trace")


# The command


@pytest.fixture
def table(tmp_path):
    from dissensus import write

    write(crowd().annotations, tmp_path / "answers.csv")
    return tmp_path / "answers.csv"


def test_the_command_shows_the_worst_first_and_why(table):
    done = run("identify", table, "--most", 3)
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert all(len(line) <= 80 for line in shown.splitlines() if "│" in line)
    assert "4 spammer, 6 expert" in shown
    assert "7 more; --top 10 shows all" in shown
    assert "(spammer): Right on" in shown


def test_json_says_the_same_as_the_library(table):
    summary = json.loads(run("identify", table, "--json", "--no-models").stdout)
    assert summary["verdicts"] == {"spammer": 4, "expert": 6}
    assert summary["annotators"][0]["verdict"] == "spammer"
    assert summary["annotators"][0]["ability"] is None


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "tsv"])
def test_tables_are_written_by_their_ending(table, tmp_path, ending):
    import polars as pl

    out = tmp_path / f"scores.{ending}"
    assert run("identify", table, "-o", out, "--no-models").returncode == 0
    reader = {"json": pl.read_json, "parquet": pl.read_parquet, "csv": pl.read_csv}
    frame = reader.get(ending, lambda path: pl.read_csv(path, separator="\t"))(out)
    assert frame["annotator"].len() == 10
    assert frame["seconds"].is_null().all()
    assert frame["verdict"].to_list().count("spammer") == 4


def test_items_and_single_scores_go_to_standard_output(table):
    shown = run("identify", table, "--items", "-o", "-").stdout.decode().splitlines()
    assert shown[0].startswith("item,n_labels,vote_entropy")
    assert len(shown) == 151
    assert "hard ones first" in run("identify", table, "--items").stdout.decode()
    shown = run("identify", table, "-s", "spam_score", "-o", "-").stdout.decode().splitlines()
    assert shown[0] == "annotator,spam_score"
    summary = json.loads(run("identify", table, "-s", "entropy", "--json").stdout)
    assert len(summary["values"]) == 150


def test_dropping_writes_what_is_kept(table, tmp_path):
    from dissensus import read

    out = tmp_path / "kept.csv"
    done = run("identify", table, "--drop", "verdict == spammer", "-o", out)
    assert done.returncode == 0
    assert "all of 4 annotators and 0 items" in done.stdout.decode()
    assert read(out).n_annotators == 6
    summary = json.loads(run("identify", table, "--drop", "spam_score<0.05", "--json").stdout)
    assert summary["labels_kept"] + summary["labels_dropped"] == 750


def test_a_folder_gets_the_files_that_peerannot_names(tmp_path):
    simulated = crowd("independent-confusion", n_items=50)
    from dissensus import write

    write(simulated.annotations, tmp_path / "set")
    folder = tmp_path / "set"
    options = ["-K", 3, "--n-epochs", 3, "-optim", "SGD", "--use-pleiss", "--alpha", 0.1]
    for name in ("entropy", "Spam_Score", "trace_confusion", "krippendorffalpha", "glad"):
        done = run("identify", folder, "-s", name, "--labels", folder / "answers.json", *options)
        assert done.returncode == 0, done.stderr
    kept = folder / "identification"
    votes = simulated.annotations.votes() / simulated.annotations.votes().sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(votes > 0, votes * np.log(votes), 0).sum(axis=1)
    np.testing.assert_allclose(np.load(kept / "entropies.npy"), entropy, atol=1e-12)
    fitted = aggregate(simulated.annotations, "DS[max_iter=50,tol=1e-6]").params.confusion
    np.testing.assert_allclose(np.load(kept / "spam_score.npy"), spam_score(fitted))
    np.testing.assert_allclose(np.load(kept / "traces_confusion.npy"), trace(fitted))
    assert np.load(kept / "krippendorff_alpha.npy").shape == ()
    assert np.load(kept / "glad" / "abilities.npy").shape == (10, 2)
    assert np.load(kept / "glad" / "difficulties.npy").shape == (50, 2)
    np.save(tmp_path / "matrices.npy", np.tile(np.eye(3), (10, 1, 1)))
    run("identify", folder, "-s", "spam_score", "--matrix-file", tmp_path / "matrices.npy")
    np.testing.assert_allclose(np.load(kept / "spam_score.npy"), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-s", "spamscor"], "did you mean spam_score?"),
        (["--drop", "spam_score ~ 1"], "cannot read"),
        (["--items", "-s", "entropy"], "without -s"),
        (["--matrix-file", "nothing.npy", "-s", "trace"], "nothing.npy"),
        (["-o", "scores.xyz"], "no format ends in .xyz"),
    ],
)
def test_mistakes_end_in_one_line(table, options, message):
    done = run("identify", table, *options)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert len(done.stderr.decode().splitlines()) == 1


def test_the_list_of_scores_is_printed():
    assert b"spam_score" in run("identificationinfo").stdout
    summary = json.loads(run("identificationinfo", "--json").stdout)
    assert [one["name"] for one in summary] == [one.name for one in SCORES]
    assert b"identificationinfo" not in run("--help").stdout


def test_another_consensus_can_be_asked_for(table):
    summary = json.loads(run("identify", table, "--consensus", "one-coin", "--json").stdout)
    assert summary["method"] == "one-coin"
    done = run("identify", table, "--consensus", "dawid")
    assert done.returncode == 2
    assert "did you mean dawid-skene?" in done.stderr.decode()
