import json

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import spearmanr

from dissensus import Annotations, DataError, Numbers, OptionError, aggregate, identify, report
from dissensus.answers.gold import gold_codes
from dissensus.formats import as_answers
from dissensus.quality.verdicts import FAULTS, LEFT_OUT, VERDICTS, rating_scores

from ..annotator_crowds import crowd, quick, verdict_crowds
from ..support import annotation_rows, relation, shared, shared_truth


def flagged(found):
    return np.isin(found.verdict, ("random", "likely random", "constant"))


def test_every_kind_of_annotator_of_classes_gets_its_verdict():
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 2, 300)
    labels = np.stack([truth] * 9, axis=1)
    labels[:, 3] = rng.integers(0, 2, 300)  # guesses
    labels[:, 4] = np.where(rng.random(300) < 0.9, 1 - truth, truth)  # misleads
    labels[:, 5] = np.where(rng.random(300) < 0.25, 1 - truth, truth)  # slips
    labels[:, 6] = 1
    labels[7:, 7] = -1
    labels[:, 8] = -1
    annotations = Annotations.from_matrix(labels)
    found = quick(annotations)
    assert found.verdict.tolist() == [
        *["attentive"] * 3,
        *("random", "reversed", "attentive", "constant", "too few labels", "too few labels"),
    ]
    assert found.labels_needed[7] >= 3
    assert "more labels are needed" in found.evidence[7]
    assert "says '1' 100% of the time" in found.evidence[6]
    assert found.worst[:3].tolist() == [3, 6, 4]
    assert set(LEFT_OUT) < set(FAULTS) < set(VERDICTS)


def test_who_is_honest_about_a_rare_class_is_not_called_constant():
    rng = np.random.default_rng(7)
    truth = (rng.random(600) < 0.03).astype(int)
    labels = np.stack([truth] * 5, axis=1)
    flip = rng.random((600, 5)) < 0.01
    labels = np.where(flip, 1 - labels, labels)
    labels[40:, 4] = -1
    labels[:40, 4] = 0  # as most of the others
    found = quick(Annotations.from_matrix(labels))
    assert not np.isin(found.verdict, FAULTS).any()
    assert found.verdict[4] == "too few labels"


def test_where_everybody_guesses_nobody_is_called_attentive():
    rng = np.random.default_rng(8)
    found = quick(Annotations.from_matrix(rng.integers(0, 4, (30, 3))))
    assert "attentive" not in found.verdict_counts


@pytest.mark.parametrize("n_classes", [5, 25])
def test_harsh_lenient_extreme_and_central_raters_are_not_flagged_but_spammers_are(n_classes):
    rating_crowd = verdict_crowds().rating_crowd
    wrong, n_attentive, found, n_spammers, named = 0, 0, 0, 0, []
    for seed in range(8):
        made = rating_crowd(np.random.default_rng([seed, 99]), n_classes, 30, 5)
        scores = quick(made.annotations, scale="ordinal")
        bad = made.are("uniform", "marginal", "constant")
        wrong, n_attentive = wrong + flagged(scores)[~bad].sum(), n_attentive + (~bad).sum()
        found, n_spammers = found + flagged(scores)[bad].sum(), n_spammers + bad.sum()
        for kind in ("harsh", "lenient"):
            named += (scores.verdict[made.are(kind)] == kind).tolist()
    assert wrong / n_attentive <= 0.01
    assert found / n_spammers >= 0.92
    assert np.mean(named) > 0.9


@pytest.mark.parametrize("n_classes", [2, 4])
def test_good_and_honest_but_weak_annotators_of_classes_are_kept(n_classes):
    class_crowd = verdict_crowds().class_crowd
    words = {kind: [] for kind in ("good", "biased", "low", "constant")}
    for seed in range(40):
        made = class_crowd(np.random.default_rng([seed, 98]), n_classes, 30, 5)
        verdict = quick(made.annotations).verdict
        for kind, seen in words.items():
            seen += verdict[made.are(kind)].tolist()
    share = {
        kind: np.isin(seen, ("random", "constant", "reversed")).mean()
        for kind, seen in words.items()
    }
    assert share["good"] <= 0.003
    assert max(share["biased"], share["low"]) <= 0.06  # 2.6 % of 2500 low ones, 200 here
    assert share["constant"] >= 0.95


def test_ratings_shifted_or_doubled_move_nobodys_correlation():
    made = verdict_crowds().rating_crowd(np.random.default_rng(3), 7, 30, 5)
    annotations = made.annotations
    value = annotations.label.astype(float)
    own = annotations.annotator == 20
    before = _numbers(annotations, value)
    for changed in (np.where(own, value + 5, value), np.where(own, 2 * value, value)):
        after = _numbers(annotations, changed)
        np.testing.assert_allclose(after.correlation, before.correlation, atol=0.015)


def _numbers(annotations, value):
    columns = (annotations.item, annotations.annotator, value)
    return identify(Numbers.from_columns(*columns))


def test_styles_are_relative_to_the_crowd_and_have_intervals():
    rng = np.random.default_rng(4)
    value = rng.normal(size=(200, 1)) + 0.4 * rng.normal(size=(200, 8))
    value[:, 1] -= 1.5
    value[:, 2] += 1.5
    value[:, 3] *= 0.5
    value[:, 4] *= 2
    value[:, 5] += 1.2 * rng.normal(size=200)
    item, annotator = np.divmod(np.arange(1600), 8)
    found = identify(Numbers.from_columns(item, annotator, value.ravel()))
    expected = ["attentive", "harsh", "lenient", "central", "extreme", "noisy"]
    assert found.verdict.tolist() == [*expected, "attentive", "attentive"]
    table = found.table()
    for name in ("level", "slope", "noise"):
        assert (table[f"{name}_low"] <= table[name]).all()
        assert (table[name] <= table[f"{name}_high"]).all()
    assert "standard deviations below the others" in found.evidence[1]
    assert "accuracy" not in table


def test_known_items_come_first():
    """Three follow an error of the crowd; only one follows the truth, and gold shows it."""
    rng = np.random.default_rng(5)
    truth, error = rng.integers(0, 3, (2, 120))
    labels = np.stack([error, error, error, truth], axis=1)
    annotations = Annotations.from_matrix(labels, items=range(120))
    gold = {str(item): str(truth[item]) for item in range(15)}
    assert quick(annotations).verdict[3] == "random"
    found = quick(annotations, gold=gold)
    assert found.verdict[3] not in FAULTS
    assert found.evidence[3].startswith("Right on 100% of 15 known labels (80% to 100%)")
    assert found.table()["gold_accuracy"][3] == 1
    values = {item: float(label) for item, label in gold.items()}
    assert identify(annotations, scale="ordinal", gold=gold).verdict[3] not in FAULTS
    assert identify(as_answers(annotations, kind="numbers"), gold=values).verdict[3] not in FAULTS


def test_verdicts_do_not_depend_on_the_consensus_of_other_scores():
    annotations = crowd(n_items=80).annotations
    one = quick(annotations)
    for method in ("majority", "one-coin", "glad"):
        other = quick(annotations, result=aggregate(annotations, method))
        assert other.verdict.tolist() == one.verdict.tolist()
        assert other.evidence == one.evidence


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@settings(max_examples=25, deadline=None)
@given(rows=annotation_rows(most=40))
def test_every_annotator_gets_a_verdict_whatever_the_labels(rows, scale):
    there, back = (quick(relation(order), scale=scale) for order in (rows, rows[::-1]))
    assert there.verdict.tolist() == back.verdict.tolist()
    assert len(there.evidence) == there.annotations.n_annotators
    assert not any("nan" in sentence for sentence in there.evidence)
    summary = json.loads(json.dumps(there.as_dict(), allow_nan=False))
    assert {row["annotator"] for row in summary["annotators"]} == set(
        there.annotations.annotators.tolist()
    )
    for name, values in there.table().items():
        assert len(values) == there.annotations.n_annotators, name
    few = there.basis.following.n_labels < 10
    assert set(there.verdict[few].tolist()) <= {"too few labels"}


@pytest.mark.parametrize("scale", ["nominal", "ordinal"])
def test_names_do_not_matter(scale):
    made = verdict_crowds().rating_crowd(np.random.default_rng(1), 5, 20, 4)
    annotations = made.annotations
    order = np.random.default_rng(2).permutation(annotations.n_annotators)
    items = np.random.default_rng(3).permutation(annotations.n_items)
    renamed = Annotations.from_codes(
        items[annotations.item],
        order[annotations.annotator],
        annotations.label,
        items=annotations.n_items,
        annotators=annotations.n_annotators,
        classes=5,
    )
    one, other = quick(annotations, scale=scale), quick(renamed, scale=scale)
    np.testing.assert_allclose(other.correlation[order], one.correlation, atol=1e-6)
    assert other.verdict[order].tolist() == one.verdict.tolist()


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_many_labels_on_one_item_are_fine(scale):
    rng = np.random.default_rng(0)
    annotator = np.append(np.arange(100_000), np.arange(20).repeat(15))
    item = np.append(np.zeros(100_000, int), np.tile(np.arange(1, 16), 20))
    found = quick(
        Annotations.from_codes(
            item, annotator, rng.integers(0, 3, len(item)), items=16, annotators=100_000, classes=3
        ),
        scale=scale,
    )
    assert (found.verdict[20:] == "too few labels").all()
    assert np.isfinite(found.correlation[:20]).all()


def test_scales_that_do_not_fit_are_refused():
    with pytest.raises(OptionError, match="no scale 'big'"):
        identify(crowd().annotations, scale="big")
    with pytest.raises(OptionError, match="these are numbers"):
        identify(Numbers.from_columns("ab", "xx", [1, 2]), scale="nominal")
    with pytest.raises(DataError, match="not a number"):
        identify(relation([("a", "x", "good")]), scale="interval")
    with pytest.raises(DataError, match="other annotations"):
        identify(crowd().annotations, aggregate(crowd(seed=1).annotations, "majority"))
    with pytest.raises(OptionError, match="confidence = 2"):
        identify(crowd().annotations, confidence=2)


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


def test_verdicts_follow_the_truth_on_real_data():
    annotations, truth = shared("bluebirds"), shared_truth("bluebirds")
    found = identify(annotations)
    known = gold_codes(annotations, truth)[annotations.item]
    right = (
        np.bincount(annotations.annotator, known == annotations.label)
        / annotations.labels_per_annotator
    )
    mean = {word: right[found.verdict == word].mean() for word in found.verdict_counts}
    assert max(mean["random"], mean["reversed"]) < 0.55 < mean["attentive"]
    assert not found.copies.flagged.any()


def test_nobody_of_labelme_is_flagged():
    assert set(quick(shared("labelme")).verdict_counts) == {"too few labels", "attentive"}


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("anesthesia", "ordinal"),
        ("politeness_wikipedia", "interval"),
        ("lewidi_csc", "ordinal"),
        ("adult3", "ordinal"),
        ("nli_variation", "interval"),
        ("wordsim353", "interval"),
        ("alt_10k_prompts", "ordinal"),
    ],
)
def test_nobody_who_clearly_follows_the_mean_of_the_others_is_flagged(name, scale):
    annotations = as_answers(shared(name), kind="numbers" if scale == "interval" else "classes")
    found = identify(annotations, scale=scale)
    item = annotations.item
    if scale == "interval":
        value = annotations.value
    else:
        value = rating_scores(annotations)[annotations.label]
    total, count = np.bincount(item, value), np.bincount(item)
    for code in np.flatnonzero(flagged(found)):
        own = (annotations.annotator == code) & (count[item] > 1)
        mine, at = value[own], item[own]
        others = (total[at] - mine) / (count[at] - 1)
        if len(set(mine)) > 1 and len(set(others)) > 1:
            z = np.arctanh(spearmanr(mine, others)[0])
            assert np.tanh(z - 1.96 / np.sqrt(max(len(mine) - 3, 1))) <= 0.2


@pytest.mark.parametrize("scale", ["nominal", "ordinal"])
def test_reports_have_the_verdicts_of_identify_whatever_their_method(scale):
    made = verdict_crowds().rating_crowd(np.random.default_rng(11), 5, 20, 4)
    annotations = made.annotations.with_scale(scale)
    expected = identify(annotations)
    summary = report(annotations, "majority")
    assert summary.annotator_scores.verdict.tolist() == expected.verdict.tolist()
    assert summary.annotator_scores.evidence == expected.evidence
    truth = dict.fromkeys(annotations.items.tolist()[:60], "2")
    judged = report(annotations, "dawid-skene", truth=truth).annotator_scores
    assert judged.verdict.tolist() == identify(annotations, gold=truth).verdict.tolist()
