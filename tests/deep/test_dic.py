"""DIC and the scores of predicted annotators: identities, conventions, noise floors."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus import Annotations, DataError, OptionError
from dissensus.deep.tendency.dic import dic, dic_interval, split_half
from dissensus.deep.tendency.scores import score, vote


def labels(seed, n_items=60, n_annotators=4, n_classes=3, share=1.0):
    """Random labels: (item, annotator), -1 where there is none."""
    random = np.random.default_rng(seed)
    table = random.integers(n_classes, size=(n_items, n_annotators))
    return np.where(random.random(table.shape) < share, table, -1)


def matrix(table, **declared):
    return Annotations.from_matrix(table, classes=range(3), **declared)


def kappa(one, other):
    """Cohen's kappa by its definition, with its conventions."""
    agree = np.mean(one == other)
    probability = sum(np.mean(one == c) * np.mean(other == c) for c in range(3))
    return 1.0 if probability == 1 else (agree - probability) / (1 - probability)


def by_definition(true, predicted, least=1):
    """The Frobenius norm of the difference of full matrices, on common items."""
    n = true.shape[1]
    out = np.zeros((n, n))
    for k in range(n):
        for j in range(n):
            both = (true[:, k] >= 0) & (true[:, j] >= 0)
            if k != j and both.sum() >= least:
                summary = [kappa(t[both, k], t[both, j]) for t in (true, predicted)]
                out[k, j] = summary[0] - summary[1]
    return np.linalg.norm(out)


@given(st.integers(0, 500), st.sampled_from([1.0, 0.6]))
def test_dic_is_the_frobenius_norm_of_the_difference_of_kappas(seed, share):
    true, predicted = labels(seed, share=share), labels(seed + 1)
    found = dic(matrix(true), matrix(predicted), min_overlap=5)
    assert found.dic == pytest.approx(by_definition(true, predicted, 5))
    assert found.dic_rms == pytest.approx(found.dic / math.sqrt(2 * found.n_pairs_used))


def test_predictions_that_are_the_labels_have_no_dic():
    annotations = matrix(labels(0, share=0.7))
    assert dic(annotations, annotations).dic == 0


def test_a_consensus_has_all_kappas_one():
    true = labels(3)
    consensus = np.repeat(labels(9, n_annotators=1), 4, axis=1)
    found = dic(matrix(true), matrix(consensus))
    assert (found.predicted == 1).all()
    summary = found.true
    assert found.dic == pytest.approx(math.sqrt(2 * ((1 - summary) ** 2).sum()))


def test_independent_predictions_have_kappas_near_zero():
    true = np.repeat(labels(0, 4000, 1), 4, axis=1)
    found = dic(matrix(true), matrix(labels(1, 4000)))
    assert np.abs(found.predicted).max() < 0.05
    assert found.dic == pytest.approx(math.sqrt(2 * 6), rel=0.05)


@given(st.permutations(range(4)), st.permutations(range(3)))
def test_names_of_annotators_and_classes_do_not_matter(annotators, classes):
    true, predicted = labels(5), labels(6)
    swap = np.array(classes)
    here = dic(matrix(true), matrix(predicted)).dic
    there = dic(matrix(swap[true[:, annotators]]), matrix(swap[predicted[:, annotators]])).dic
    assert there == pytest.approx(here)


def test_it_is_symmetric_where_all_label_all():
    one, other = matrix(labels(1)), matrix(labels(2))
    assert dic(one, other).dic == pytest.approx(dic(other, one).dic)


def test_it_is_bounded():
    true = np.tile([[0, 1], [1, 0]], (20, 1))
    assert dic(matrix(true), matrix(np.repeat(true[:, :1], 2, axis=1))).dic == pytest.approx(
        2 * math.sqrt(2)
    )


def test_constant_annotators_have_kappa_one_together_and_zero_with_others():
    table = np.stack([np.zeros(30, int), np.zeros(30, int), np.arange(30) % 2], axis=1)
    found = dic(matrix(table), matrix(table))
    assert found.true.tolist() == [1.0, 0.0, 0.0]


def test_pairs_with_few_common_items_are_in_neither_matrix():
    table = labels(0, 30, 3)
    table[5:, 2] = -1  # the third has five items
    annotations = matrix(table)
    found = dic(annotations, matrix(labels(1, 30, 3)), min_overlap=10)
    assert found.n_pairs_used == 1
    assert np.isnan(found.matrices(3)[0][0, 2])


def test_matched_looks_only_where_labels_are():
    true, predicted = labels(0, share=0.5), labels(1)
    elsewhere = np.where(true >= 0, predicted, labels(2))
    here = [dic(matrix(true), matrix(table)).dic for table in (predicted, elsewhere)]
    assert here[0] == here[1]
    there = [dic(matrix(true), matrix(table), scope="all").dic for table in (predicted, elsewhere)]
    assert there[0] != there[1]


def test_scope_all_takes_the_predicted_kappas_from_all_items():
    true, predicted = labels(0, share=0.5), labels(1)
    found = dic(matrix(true), matrix(predicted), scope="all")
    assert found.predicted[0] == pytest.approx(kappa(predicted[:, 0], predicted[:, 1]))


def test_weighted_kappas_and_plain_agreement_can_be_asked_for():
    table = np.array([[0, 2], [1, 1], [2, 2], [0, 0]] * 5)
    near = np.array([[0, 1], [1, 1], [2, 2], [0, 0]] * 5)
    plain = dic(matrix(table), matrix(near)).dic
    squared = dic(matrix(table), matrix(near), weights="quadratic").dic
    assert plain < squared
    found = dic(matrix(table), matrix(near), measure="percent")
    assert found.true.tolist() == [0.75]
    assert found.dic == 0


def test_alpha_is_krippendorffs():
    from dissensus.metrics import krippendorff_alpha

    table = labels(4, n_annotators=2)
    found = dic(matrix(table), matrix(table), measure="alpha")
    assert found.true[0] == pytest.approx(krippendorff_alpha(matrix(table)))


def test_predictions_are_matched_by_name():
    annotations = Annotations.from_columns("aabb" * 5, "xyxy" * 5, "0110" * 5)
    predicted = Annotations.from_columns("bbaacc" * 5, "yxyxxy" * 5, "011010" * 5)
    found = dic(annotations, predicted, min_overlap=1)
    assert found.n_pairs_used == 1


def test_a_missing_prediction_is_named():
    annotations = Annotations.from_columns("aabb", "xyxy", "0110")
    with pytest.raises(DataError, match="annotator 'y' on item 'b'"):
        dic(annotations, Annotations.from_columns("aab", "xyx", "011"))


def test_what_does_not_exist_is_refused():
    annotations = matrix(labels(0))
    with pytest.raises(OptionError, match="no scope 'some'"):
        dic(annotations, annotations, scope="some")
    with pytest.raises(OptionError, match="no measure 'gwet'"):
        dic(annotations, annotations, measure="gwet")


def test_intervals_hold_the_noise_of_items():
    random = np.random.default_rng(0)
    true = labels(0, 400)
    predicted = np.where(random.random(true.shape) < 0.7, true, labels(1, 400))
    found = dic_interval(matrix(true), matrix(predicted), resamples=60)["dic"]
    assert found.low < found.value < found.high


def redraws(n_items):
    """Return two samples of labels from one distribution."""
    random = np.random.default_rng(1)
    law = random.dirichlet(np.ones(3), size=(n_items, 1)).repeat(5, axis=1)  # (item, annotator, c)
    draw = [(random.random((n_items, 5, 1)) > law.cumsum(2)[..., :-1]).sum(axis=2) for _ in "ab"]
    return matrix(draw[0]), matrix(draw[1])


def test_halves_estimate_the_distance_of_a_second_labelling():
    first, second = redraws(1500)
    distance = dic(first, second).dic_rms
    assert split_half(first)[1] == pytest.approx(distance, rel=0.35)


def test_noise_falls_with_items():
    few, many = (split_half(redraws(n)[0])[1] for n in (200, 3200))
    assert many < few / 2


def test_pairs_with_few_common_items_have_no_floor():
    assert all(map(math.isnan, split_half(matrix(labels(0, 15)))))


@pytest.mark.parametrize("resamples", [0, 20])
def test_without_a_pair_to_compare_there_is_no_distance(resamples):
    apart = labels(0, 20, 2)
    apart[:10, 0] = apart[10:, 1] = -1  # nobody labelled what another labelled
    found = dic(matrix(apart), matrix(apart), min_overlap=1)
    assert found.n_pairs_used == 0
    assert math.isnan(found.dic)
    assert found.as_dict()["dic"] is None
    spans = dic_interval(matrix(apart), matrix(apart), min_overlap=1, resamples=resamples)
    assert all(math.isnan(value) for span in spans.values() for value in span)


def predicted(seed=0, share=1.0):
    annotations = matrix(labels(seed, share=share))
    probability = np.random.default_rng(seed).dirichlet(np.ones(3), size=len(annotations))
    return annotations, np.log(probability)


def test_scores_are_what_a_loop_over_annotators_finds():
    from sklearn.metrics import accuracy_score, f1_score, log_loss

    annotations, log_probability = predicted(share=0.8)
    found = score(annotations, log_probability)
    for code in range(annotations.n_annotators):
        mine = annotations.annotator == code
        label, best = annotations.label[mine], log_probability[mine].argmax(axis=1)
        assert found.accuracy[code] == pytest.approx(accuracy_score(label, best))
        assert found.macro_f1[code] == pytest.approx(f1_score(label, best, average="macro"))
        assert found.weighted_f1[code] == pytest.approx(f1_score(label, best, average="weighted"))
        summary = log_loss(label, np.exp(log_probability[mine]), labels=range(3))
        assert found.log_loss[code] == pytest.approx(summary)
    assert found.summary()["log_loss"] == pytest.approx(
        -log_probability[np.arange(len(annotations)), annotations.label].mean()
    )
    assert (
        found.summary()["dic"]
        == dic(annotations, annotations.with_codes(label=log_probability.argmax(axis=1))).dic
    )


def test_ordered_classes_have_an_absolute_error_in_steps():
    annotations, log_probability = predicted(share=0.8)
    assert np.isnan(score(annotations, log_probability).mae).all()
    found = score(annotations.with_scale("ordinal"), log_probability)
    for code in range(annotations.n_annotators):
        mine = annotations.annotator == code
        best = log_probability[mine].argmax(axis=1)
        expected = np.abs(best - annotations.label[mine].astype(int)).mean()
        assert found.mae[code] == pytest.approx(expected)
    assert found.summary()["mae"] == pytest.approx(found.mae.mean())


def test_knowing_the_labels_is_scored_as_perfect():
    annotations = matrix(labels(0))
    sure = np.log(np.eye(3)[annotations.label] * 0.97 + 0.01)
    found = score(annotations, sure).summary()
    assert found["accuracy"] == found["accuracy_worst_decile"] == found["consensus_accuracy"] == 1
    assert found["dic"] == 0
    assert found["kappa_correlation"] == pytest.approx(1)


def test_annotators_with_few_labels_are_left_out_of_means():
    table = labels(0)
    table[3:, 0] = -1
    annotations = matrix(table)
    found = score(annotations, np.log(np.eye(3)[annotations.label] * 0.97 + 0.01), min_labels=10)
    assert found.summary()["n_annotators"] == 3
    assert found.count[0] == 3


def test_exact_label_marginals_have_no_error():
    annotations = Annotations.from_matrix([[0, 0], [1, 0], [0, 1], [1, 1]])
    half = np.full((8, 2), math.log(0.5))
    assert score(annotations, half, min_labels=1).marginal_error.tolist() == [0.0, 0.0]
    assert score(annotations, half, min_labels=1).accuracy.tolist() == [0.5, 0.5]


def test_votes_are_drawn_by_the_seed_where_they_tie():
    votes = np.ones((200, 2))
    drawn = [vote(votes, seed).tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 60 < sum(drawn[0]) < 140


def test_predictions_for_other_labels_are_refused():
    annotations, log_probability = predicted()
    with pytest.raises(DataError, match="for 240 labels of 3 classes"):
        score(annotations, log_probability[:-1])
