from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings

from dissensus import Annotations, aggregate, aggregators
from dissensus.answers.gold import gold_codes
from dissensus.quality.leave_one_out import has_other_labels, leave_one_out

from ..annotator_crowds import crowd, quick
from ..support import annotation_rows, relation, rows_of


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
    result = aggregate(annotations, "majority")
    found = quick(annotations, result=result)
    judged = set(annotations.items[result.is_identifiable].tolist())
    credit = defaultdict(list)
    for item, annotator, label in rows_of(annotations):
        if item not in judged:
            continue  # it cannot be told who is right there
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
