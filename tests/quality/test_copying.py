from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest

from dissensus import OptionError, aggregate
from dissensus.quality.copying import copies, discoveries
from dissensus.quality.leave_one_out import leave_one_out

from ..annotator_crowds import crowd
from ..support import relation, rows_of


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
