"""Models as annotators: the sections of `judge`, on simulated and on published data."""

import json
import math
import re

import numpy as np
import pytest

from dissensus import Annotations, DataError, OptionError, aggregate, judge, read, read_truth
from dissensus.datasets.simulation import simulate_judges
from dissensus.formats import as_answers
from dissensus.formats.side_tables import read_kinds
from dissensus.judging import (
    check_requirement,
    escalate,
    mixed,
    pair_biases,
    panel,
    periods,
    plan,
    pool,
    replacement,
    transport,
    true_difference,
    true_mean,
    true_shares,
)
from dissensus.judging.clusters import design_effect
from dissensus.judging.panel import effective_number
from dissensus.judging.pool import pooled
from dissensus.judging.question import too_few
from dissensus.judging.replacement import dependent_discoveries
from dissensus.judging.true_mean import powered_mean, stratified_mean
from dissensus.judging.true_shares import rogan_gladen, stratified_share

from ..support import shared_path

EPSILON = {
    "alt_10k_prompts": 0.15,
    "alt_cebab_aspects": 0.1,
    "alt_framing": 0.15,
    "alt_mtbench": 0.2,
    "alt_summeval": 0.2,
    "alt_wax": 0.1,
}


def shared_set(name: str) -> Annotations:
    path = shared_path(name)
    answers = as_answers(path / "answers.csv.gz", kind="classes")
    return answers.with_kinds(read_kinds(path / "workers.csv.gz"))


def truth_of(drawn) -> dict[str, str]:
    names = drawn.annotations.classes[drawn.truth].tolist()
    return dict(zip(drawn.annotations.items.tolist(), names, strict=True))


def numbers(y, f, n_rest_f=()):
    """Return annotations of a person and a model who give numbers to items."""
    f = [*f, *n_rest_f]
    rows = [(f"i{k}", "ann", value) for k, value in enumerate(y)]
    rows += [(f"i{k}", "model:m", value) for k, value in enumerate(f)]
    item, annotator, value = zip(*rows, strict=True)
    return Annotations.from_columns(item, annotator, value).with_kinds().with_scale("interval")


# Replacement


@pytest.mark.parametrize("name", EPSILON)
def test_the_published_figures_of_the_alternative_annotator_test(name):
    text = (shared_path(name) / "README.md").read_text(encoding="utf-8")
    printed = re.findall(r"^\| ([\w.-]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    found = replacement(mixed(shared_set(name)), epsilon=EPSILON[name], resamples=0)
    ours = {one.judge: (f"{one.winning_rate:.2f}", f"{one.advantage:.2f}") for one in found.models}
    assert len(printed) == 6
    assert ours == {model: (rate, advantage) for model, rate, advantage in printed}


def test_people_are_tested_as_candidates_too():
    found = replacement(mixed(shared_set("alt_wax")), epsilon=0.1, resamples=0)
    assert (found.n_people_pass, found.n_people_tested) == (3, 8)


def test_a_model_that_copies_one_of_three_people_replaces_an_annotator():
    drawn = simulate_judges(n_items=300, per_item=3, n_judges=1, seed=1)
    one = drawn.annotations
    mine = one.annotator == one.annotators.tolist().index("p1")
    copy = Annotations.from_columns(
        one.items[one.item[mine]], ["model:copy"] * int(mine.sum()), one.classes[one.label[mine]]
    )
    people = one.subset(annotator_kind="person")
    found = replacement(mixed(people.merge(copy.with_kinds())), epsilon=0.1)
    assert found.models[0].verdict == "replaces"
    assert found.models[0].stability == 1


def test_a_model_at_random_fails():
    drawn = simulate_judges(n_items=200, per_item=3, judge_accuracy=0.5, n_judges=1, seed=1)
    found = replacement(mixed(drawn.annotations), epsilon=0.1)
    assert found.models[0].verdict == "fails"
    assert found.models[0].winning_rate == 0


def test_benjamini_yekutieli_is_stricter_than_benjamini_hochberg():
    from dissensus.quality.copying import discoveries

    p_value = np.array([0.001, 0.012, 0.02, 0.9])
    assert discoveries(p_value, 0.05).sum() == 3
    assert dependent_discoveries(p_value, 0.05).sum() == 2


def test_clusters_of_equal_items_count_once():
    drawn = simulate_judges(n_items=60, per_item=3, n_judges=1, seed=4)
    once = drawn.annotations
    twice = Annotations.from_columns(
        [f"{name}/{k}" for k in range(3) for name in once.items[once.item].tolist()],
        once.annotators[once.annotator].tolist() * 3,
        once.classes[once.label].tolist() * 3,
    ).with_kinds()
    cluster = {name: name.partition("/")[0] for name in twice.items.tolist()}
    plain = replacement(mixed(once), resamples=0, min_items=10).models[0]
    clustered = replacement(mixed(twice, cluster=cluster), resamples=0, min_items=10).models[0]
    for one, other in zip(plain.compared, clustered.compared, strict=True):
        assert other.p_value == pytest.approx(one.p_value)


# Rates


@pytest.mark.parametrize("n_labelled", [25, 50, 100])
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("alt_framing", "yes"),
        ("alt_cebab_aspects", "Negative"),
        ("alt_cebab_aspects", "Positive"),
        ("alt_wax", "Function"),
    ],
)
def test_intervals_of_shares_cover_the_truth_and_are_narrower_than_people_alone(
    name, label, n_labelled
):
    from dissensus.base.probability import proportion

    data = mixed(shared_set(name))
    code = data.classes.tolist().index(label)
    says = data.judge_repeats[data.judge_names.index("gpt-4o")][0].label == code
    rng = np.random.default_rng(0)
    inside, widths = [], []
    for repeat in range(200):
        y = (rng.random(data.n_items) < data.target_shares[:, code]).astype(float)
        chosen = rng.choice(len(y), n_labelled, replace=False)
        _, low, high = stratified_share(y[chosen], says[chosen], says, draws=1000, seed=repeat)
        people = proportion(np.array([y[chosen].sum()]), np.array([float(n_labelled)]))
        inside.append(low <= y.mean() <= high)
        widths.append((high - low) / (people.high[0] - people.low[0]))
    assert np.mean(inside) >= 0.91
    assert np.mean(widths) <= 1


def test_a_given_slope_gives_the_interval_of_ppi_python():
    ppi = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
    rng = np.random.default_rng(0)
    y, rest = rng.normal(size=60), rng.normal(size=500)
    f = y + rng.normal(size=60)
    for slope in (0.0, 0.3, 1.0):
        low, high = ppi.ppi_mean_ci(y, f, rest, alpha=0.05, lam=slope)
        found = powered_mean(y, f, rest, slope=slope, exact=False)
        np.testing.assert_allclose(found[1:3], [np.ravel(low)[0], np.ravel(high)[0]], atol=1e-8)


def test_the_formula_of_prediction_powered_means():
    rng = np.random.default_rng(1)
    y, rest = rng.normal(size=40), rng.normal(size=200)
    f = 0.5 * y + rng.normal(size=40)
    found = powered_mean(y, f, rest, slope=0.4, exact=False)
    variance = np.var(y - 0.4 * f) / 40 + 0.16 * np.var(rest) / 200
    middle = y.mean() + 0.4 * (rest.mean() - f.mean())
    reach = 1.959963984540054 * math.sqrt(variance)
    np.testing.assert_allclose(found[:3], [middle, middle - reach, middle + reach])


def test_a_judge_equal_to_the_labels_saves_what_theory_allows():
    rng = np.random.default_rng(0)
    y, rest = rng.normal(size=100), rng.normal(size=900)
    _, low, high, _ = powered_mean(y, y.copy(), rest)
    _, alone_low, alone_high, _ = powered_mean(y, y, y[:0])
    assert (high - low) / (alone_high - alone_low) == pytest.approx(math.sqrt(0.1), rel=0.1)


def test_a_constant_judge_and_no_further_items_leave_people_alone():
    y = np.random.default_rng(0).normal(size=30)
    alone = powered_mean(y, y, y[:0])
    assert powered_mean(y, np.ones(30), np.ones(100)) == (*alone[:3], 0.0)
    assert powered_mean(y, y.copy(), y[:0]) == alone
    says = y > 0
    assert stratified_share(says.astype(float), says, says)[0] == pytest.approx(says.mean())


def test_means_of_a_bounded_scale_by_group_cover_the_truth():
    rng, value = np.random.default_rng(0), np.arange(1.0, 6.0)
    inside = []
    for repeat in range(200):
        y = rng.choice(5, size=100, p=[0.01, 0.01, 0.03, 0.05, 0.9])
        f = np.clip(y + rng.integers(-1, 2, size=100), 0, 4).astype(float)
        chosen = rng.choice(100, 25, replace=False)
        shares = np.eye(5)[y]
        pooled_shares = np.array([0.02, 0.02, 0.03, 0.08, 0.85])
        _, low, high = stratified_mean(
            value, shares[chosen], f[chosen], f, pooled_shares, draws=500, seed=repeat
        )
        inside.append(low <= value[y].mean() <= high)
    assert np.mean(inside) >= 0.92


def test_clusters_make_intervals_wider():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(10), 10)
    y = np.repeat(rng.integers(2, size=10), 10).astype(float)
    says = rng.random(100) < 0.5
    _, low, high = stratified_share(y, says, says)
    _, wide_low, wide_high = stratified_share(y, says, says, cluster, cluster)
    assert wide_high - wide_low > 2 * (high - low)
    assert design_effect(y - y.mean(), np.arange(100)) == 1.0
    plain = powered_mean(y, y, y[:0])
    clustered = powered_mean(y, y, y[:0], (cluster, cluster[:0]))
    assert clustered[2] - clustered[1] > 2 * (plain[2] - plain[1])


def test_items_chosen_by_their_class_need_rogan_and_gladen():
    rng, inside, strata = np.random.default_rng(0), [], []
    for _ in range(200):
        y = (rng.random(1000) < 0.1).astype(float)
        says = np.where(rng.random(1000) < 0.85, y, 1 - y) > 0
        ends = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
        chosen = np.concatenate([rng.choice(one, 50, replace=False) for one in ends])
        found = rogan_gladen(says, y[chosen], says[chosen])
        inside.append(found is not None and found[1] <= y.mean() <= found[2])
        _, low, high = stratified_share(y[chosen], says[chosen], says, draws=300)
        strata.append(low <= y.mean() <= high)
    assert np.mean(inside) >= 0.93
    assert np.mean(strata) < 0.1


def test_a_judge_no_better_than_random_is_refused_where_items_were_chosen_by_class():
    y = np.array([1.0, 0.0] * 20)
    assert rogan_gladen(y < 1, y, y < 1) is None


def test_how_items_were_chosen_decides_the_method_and_is_stated():
    drawn = simulate_judges(n_items=400, n_labelled=100, seed=2)
    for sampled, method in (
        ("random", "strata"),
        ("by-judge", "strata"),
        ("by-label", "rogan-gladen"),
    ):
        found = judge(drawn.annotations, sampled=sampled, resamples=10)
        assert {one.method for one in found.shares} == {method}
        assert math.isnan(found.shares[0].people_low) == (sampled != "random")
    assert any("chosen by their true class" in one for one in found.sentences)
    with pytest.raises(OptionError, match="sampled = 'by-hand'"):
        judge(drawn.annotations, sampled="by-hand")


def test_two_systems_on_the_same_prompts_are_compared_within_prompts():
    rng = np.random.default_rng(0)
    level = rng.normal(size=80)
    rows = []
    for system, shift in (("a", 0.0), ("b", 0.4)):
        for k in range(80):
            name, y = f"{system}{k}", level[k] + shift + 0.1 * rng.normal()
            rows.append((name, "model:m", round(y + 0.1 * rng.normal(), 3), system, k))
            if k < 30:
                rows.append((name, "ann", round(y, 3), system, k))
    item, annotator, value, system, prompt = zip(*rows, strict=True)
    annotations = Annotations.from_columns(
        item, annotator, value, system=np.array(system), prompt=np.array(prompt)
    )
    annotations = annotations.with_kinds().with_scale("interval")
    paired = true_difference(mixed(annotations, by="system", cluster="prompt"), "b", "a")
    apart = true_difference(mixed(annotations, by="system"), "b", "a")
    assert paired.paired
    assert not apart.paired
    assert paired.low < 0.4 < paired.high
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)


# Panel


@pytest.mark.parametrize("count", [2, 5, 10])
def test_identical_judges_are_worth_one_and_independent_ones_their_number(count):
    for shared, worth in ((1.0, 1.0), (0.0, count)):
        drawn = simulate_judges(n_items=3000, n_labelled=0, n_judges=count, shared=shared, seed=1)
        found = panel(mixed(drawn.annotations, truth=truth_of(drawn)), resamples=20)
        assert found.worth == pytest.approx(worth, rel=0.1)


def test_a_copy_added_to_equally_correlated_judges_never_raises_their_worth():
    for rho in (0.0, 0.2, 0.5, 0.9, 1.0):
        for count in range(2, 8):
            pairs = count * (count - 1) / 2
            with_copy = (pairs * rho + 1 + (count - 1) * rho) / (pairs + count)
            before, after = effective_number(count, rho), effective_number(count + 1, with_copy)
            assert after <= before + 1e-9


def test_shared_errors_are_only_claimed_where_people_share_fewer():
    wax, framing = (judge(shared_set(name), resamples=50) for name in ("alt_wax", "alt_framing"))
    assert wax.panel.shared
    assert not framing.panel.shared
    assert wax.panel.worth == pytest.approx(1.91, abs=0.005)
    assert framing.panel.worth == pytest.approx(2.04, abs=0.005)


def test_prompts_of_one_model_are_one_family():
    drawn = simulate_judges(n_items=500, n_labelled=0, n_judges=2, shared=0.0, seed=0)
    one = drawn.annotations
    names = {"model:m1": "model:m/a", "model:m2": "model:n/a"}
    rows = [
        (item, names[who], label)
        for item, who, label in zip(
            one.items[one.item].tolist(),
            one.annotators[one.annotator].tolist(),
            one.classes[one.label].tolist(),
            strict=True,
        )
    ]
    rows += [(item, "model:m/b", label) for item, who, label in rows if who == "model:m/a"]
    item, who, label = zip(*rows, strict=True)
    data = mixed(Annotations.from_columns(item, who, label).with_kinds(), truth=truth_of(drawn))
    found = panel(data, resamples=20)
    assert found.within == pytest.approx(1)
    assert abs(found.between) < 0.2


# Pool


@pytest.mark.parametrize("seen", [1, 2])
@pytest.mark.parametrize("name", ["alt_wax", "alt_cebab_aspects", "alt_framing"])
def test_the_pool_is_no_worse_than_people_and_better_calibrated(name, seen):
    from dissensus.judging.mixed import voices, weighted_votes

    data = mixed(shared_set(name))
    people, rng = data.people, np.random.default_rng(0)
    order = np.lexsort((rng.random(len(people)), people.item))
    rank = np.empty(len(people), dtype=int)
    rank[order] = np.arange(len(people)) - people.index[people.item[order].astype(int)]
    visible, held = people.keep(rank < seen), weighted_votes(people.keep(rank >= seen))
    votes = weighted_votes(visible)
    found = pooled(votes, voices(visible), data.judges, data.cluster, data.classes)
    used = held.sum(axis=1) > 0
    shares = held / np.maximum(held.sum(axis=1), 1)[:, None]
    best = (held > held.max(axis=1)[:, None] - 1e-9) & (held > 0)

    def accuracy(posterior):
        top = posterior > posterior.max(axis=1)[:, None] - 1e-9
        right = (top * best / np.maximum(best.sum(axis=1), 1)[:, None]).sum(axis=1)
        return (right / top.sum(axis=1))[used].mean()

    def loss(posterior):
        return -(shares * np.log(np.maximum(posterior, 1e-12))).sum(axis=1)[used].mean()

    smooth = (votes + 0.1) / (votes.sum(axis=1) + 0.1 * data.n_classes)[:, None]
    assert accuracy(found.posterior) >= accuracy(votes) - 0.005
    assert loss(found.posterior) < loss(smooth)
    assert loss(found.posterior) < loss(found.predicted)
    assert found.learned == (seen == 2)


def test_what_the_judges_predict_never_uses_people_on_the_item():
    drawn = simulate_judges(n_items=100, per_item=1, n_judges=3, seed=3)
    data = mixed(drawn.annotations)
    votes = data.person_votes
    before = pooled(votes, data.n_people, data.judges, data.cluster, data.classes).predicted
    flipped = votes.copy()
    flipped[7] = flipped[7][::-1]
    after = pooled(flipped, data.n_people, data.judges, data.cluster, data.classes).predicted
    np.testing.assert_allclose(before[7], after[7], atol=1e-9)
    assert np.abs(before - after).max() > 1e-6


def test_a_stated_confidence_helps_the_pool():
    drawn = simulate_judges(n_items=1500, n_judges=1, judge_accuracy=0.7, shared=0.0, seed=2)
    with_it, without = (
        pool(mixed(one)) for one in (drawn.annotations, drawn.annotations.with_codes())
    )
    truth = np.arange(1500), drawn.truth
    loss = [-np.log(one.predicted[truth]).mean() for one in (with_it, without)]
    assert loss[0] < loss[1] - 0.02


def test_judge_pool_beats_one_crowd_of_people_and_models():
    annotations = shared_set("alt_wax")
    data = mixed(annotations)
    rng = np.random.default_rng(1)
    people = annotations.is_kind("person")[annotations.annotator]
    order = np.lexsort((rng.random(len(people)), ~people, annotations.item))
    rank = np.empty(len(people), dtype=int)
    rank[order] = np.arange(len(people)) - annotations.index[annotations.item[order].astype(int)]
    seen = annotations.keep(~people | (rank < 2))
    held = annotations.keep(people & (rank >= 2)).votes()
    best = held.argmax(axis=1)
    sure = (held == held.max(axis=1)[:, None]).sum(axis=1) == 1
    right = {
        name: (aggregate(seen, name).label == best)[sure].mean()
        for name in ("judge-pool", "judge-pool[likelihood=one-coin]", "dawid-skene")
    }
    assert right["judge-pool"] > right["dawid-skene"]
    assert right["judge-pool[likelihood=one-coin]"] > right["dawid-skene"]
    assert data.n_classes == len(annotations.classes)


def test_people_keep_their_accuracies_when_a_pool_labels_other_items():
    drawn = simulate_judges(n_items=300, per_item=3, judge_accuracy=0.6, seed=5)
    one = drawn.annotations
    label = one.label.astype(int).copy()
    liar = one.annotator == one.annotators.tolist().index("p1")
    label[liar] = 1 - drawn.truth[one.item.astype(int)[liar]]
    known = one.with_codes(label=label)
    fitted = aggregate(known, "judge-pool[likelihood=one-coin]")
    only = known.subset(items=known.items[:50], annotators=["p1"])
    found = fitted.predict(only)
    assert (found.label == drawn.truth[:50]).mean() > 0.9


def test_a_fitted_pool_labels_items_that_only_models_saw(tmp_path):
    from dissensus import ClassAggregation

    drawn = simulate_judges(n_items=400, per_item=2, judge_accuracy=0.9, seed=5)
    first = drawn.annotations.subset(items=drawn.annotations.items[:300])
    rest = drawn.annotations.subset(items=drawn.annotations.items[300:], annotator_kind="model")
    fitted = aggregate(first, "judge-pool")
    fitted.save(tmp_path / "pool")
    found = ClassAggregation.load(tmp_path / "pool").predict(rest)
    assert (found.label == drawn.truth[300:]).mean() > 0.8


# Checks by people


def test_the_most_doubtful_items_are_checked_first_and_a_tenth_at_random():
    drawn = simulate_judges(n_items=500, n_labelled=150, n_classes=3, judge_accuracy=0.75, seed=1)
    data = mixed(drawn.annotations)
    merged = pool(data)
    found = escalate(data, merged, budget=100)
    assert len(found.chosen) == 100
    assert found.audit.sum() == 10
    assert (np.diff(found.doubt) <= 1e-9).all()
    assert (np.diff(found.gained) >= -1e-12).all()
    assert found.gained[[0, -1]].tolist() == pytest.approx([0, 1])
    assert set(found.items.tolist()).isdisjoint(data.people.items[data.known].tolist())
    everything = escalate(data, merged, budget=10_000)
    assert len(everything.chosen) == len(everything.items) == 350
    assert everything.audit.all()


def test_a_plan_asks_people_only():
    drawn = simulate_judges(n_items=120, n_labelled=60, seed=1)
    data = mixed(drawn.annotations)
    made = plan(data, pool(data), budget=10)
    assert len(made) == 10
    assert set(made.table["annotator"].tolist()) <= {"p1", "p2", "p3"}
    assert judge(drawn.annotations, resamples=5).plan(budget=3).table["item"].shape == (3,)


# Pairs


def pairs(answers, truth=None):
    """Return pairs from (item, judge, label, order)."""
    item, who, label, order = zip(*answers, strict=True)
    annotations = Annotations.from_columns(item, who, label, classes="12", order=np.array(order))
    return mixed(annotations.with_kinds(), truth=truth)


def test_a_judge_who_always_chooses_the_first_has_the_largest_bias_and_always_flips():
    rows = [(f"i{k}", "model:m", label, order) for k in range(30) for label, order in ("1g", "2s")]
    rows = [(i, who, label, {"g": "given", "s": "swapped"}[order]) for i, who, label, order in rows]
    (found,) = pair_biases(pairs(rows))
    assert (found.estimate, found.low, found.high) == (0.5, 0.5, 0.5)
    assert found.n_flips == found.to_first == found.both_orders == 30


def test_renumbering_the_two_answers_changes_no_bias():
    rng = np.random.default_rng(0)
    rows, other, lengths, swapped = [], [], {}, {}
    truth, there = {}, {}
    flip = {"1": "2", "2": "1", "given": "swapped", "swapped": "given"}
    for k in range(60):
        name = f"i{k}"
        lengths[name] = (float(rng.integers(100)), float(rng.integers(100)))
        swapped[name] = lengths[name][::-1]
        truth[name] = "12"[rng.integers(2)]
        there[name] = flip[truth[name]]
        for order in ("given", "swapped"):
            label = "12"[rng.integers(2)]
            rows.append((name, "model:m", label, order))
            other.append((name, "model:m", flip[label], flip[order]))
    one = pair_biases(pairs(rows, truth), lengths=lengths)
    two = pair_biases(pairs(other, there), lengths=swapped)
    for left, right in zip(one, two, strict=True):
        assert left.estimate == pytest.approx(right.estimate)
        assert left.low == pytest.approx(right.low)
        assert left.n_flips == right.n_flips


def test_one_order_throughout_is_refused():
    rows = [(f"i{k}", "model:m", "12"[k % 2], "given") for k in range(40)]
    (found,) = pair_biases(pairs(rows))
    assert found.problem == "order"
    assert math.isnan(found.estimate)


def test_one_random_order_gives_the_same_bias_with_a_wider_interval():
    rng = np.random.default_rng(0)
    both, single = [], []
    for k in range(300):
        better = rng.integers(2)
        for order in (0, 1):
            label = order if rng.random() < 0.3 else better
            row = (f"i{k}", "model:m", "12"[label], ("given", "swapped")[order])
            both.append(row)
            if order == rng.integers(2) or (order == 1 and single[-1:] and single[-1][0] != row[0]):
                single.append(row)
    (two,), (one,) = pair_biases(pairs(both)), pair_biases(pairs(single))
    assert one.low < two.estimate < one.high
    assert one.high - one.low > 1.5 * (two.high - two.low)


def test_a_preference_that_people_share_is_no_bias():
    names = [f"i{k}" for k in range(40)]
    lengths = dict.fromkeys(names, (10.0, 20.0))
    rows = [(name, "model:m", "2", "given") for name in names]
    found = pair_biases(pairs(rows, dict.fromkeys(names, "2")), lengths=lengths)
    assert next(one for one in found if one.kind == "length").estimate == 0
    assert not next(one for one in found if one.kind == "length").clear


def test_a_judge_who_prefers_its_own_family():
    names = [f"i{k}" for k in range(60)]
    systems = dict.fromkeys(names, ("m/one", "other"))
    rows = [(name, "model:m/judge", "1", "given") for name in names]
    truth = {name: "12"[k % 2] for k, name in enumerate(names)}
    found = next(
        one for one in pair_biases(pairs(rows, truth), systems=systems) if one.kind == "family"
    )
    assert found.estimate == pytest.approx(0.5)
    assert found.clear


def test_published_biases_of_pairs():
    path = shared_path("llmbar")
    data = mixed(read(path / "answers.csv.gz"), truth=read_truth(path / "truth.csv.gz"))
    found = {one.judge: one for one in pair_biases(data)}
    for name, estimate, reach in (
        ("ChatGPT/Vanilla", 0.160, 0.030),
        ("Falcon/Vanilla", 0.277, 0.031),
        ("PaLM2/Vanilla", 0.059, 0.029),
        ("GPT-4/Vanilla", 0.012, 0.016),
    ):
        one = found[name]
        assert one.estimate == pytest.approx(estimate, abs=0.0006)
        assert (one.high - one.low) / 2 == pytest.approx(reach, abs=0.0006)


# Transport


def test_a_judge_that_drifts_raises_an_alarm_in_later_periods():
    quiet, moved = (
        simulate_judges(n_items=1500, n_judges=1, shared=0.0, drift=drift, n_classes=3, seed=6)
        for drift in (0.0, 0.4)
    )
    # Errors go to one class, so that its share drifts.
    for drawn, alarms in ((quiet, False), (moved, True)):
        one = drawn.annotations
        label = one.label.astype(int).copy()
        wrong = (one.annotator == 0) & (label != drawn.truth[one.item.astype(int)])
        label[wrong] = 0
        found = judge(one.with_codes(label=label, time=one.columns["time"]), by="time", resamples=5)
        late = [row for row in found.transport if row.group == "period 5"]
        early = [row for row in found.transport if row.group == "period 2"]
        assert any(row.alarm for row in late) == alarms
        assert not any(row.alarm for row in early)
        assert {row.reference for row in found.transport} == {"period 1"}


def test_published_errors_of_transport():
    path = shared_path("cje_arena")
    from dissensus.formats.side_tables import read_items

    systems = {item: row["system"] for item, row in read_items(path / "tasks.csv.gz").items()}
    data = mixed(shared_set("cje_arena"), by=systems)
    found = {one.group: one for one in transport(data)}
    assert {name for name, one in found.items() if one.alarm} == {"unhelpful"}
    assert found["unhelpful"].error == pytest.approx(-0.227, abs=0.0006)
    assert found["clone"].error == pytest.approx(0.007, abs=0.0006)
    means = {one.group: one for one in true_mean(data)}
    assert means["unhelpful"].estimate == pytest.approx(0.119, abs=0.0006)


def test_a_reference_has_to_be_a_group():
    drawn = simulate_judges(n_items=60, n_labelled=40, seed=1).annotations
    by = ["ab"[k % 2] for k in range(60)]
    assert judge(drawn, by=by, reference="a", resamples=5)
    for groups in (by, None):
        with pytest.raises(OptionError, match="no group 'c'; by=… makes groups"):
            judge(drawn, by=groups, reference="c", resamples=5)


def test_periods_have_about_as_many_items():
    names = periods(list(map(float, range(100))))
    assert {names.count(one) for one in set(names)} == {20}


# All together


def test_rows_and_names_change_nothing():
    drawn = simulate_judges(n_items=150, n_labelled=80, n_classes=3, seed=8)
    one = drawn.annotations
    rows = list(
        zip(
            one.items[one.item].tolist(),
            one.annotators[one.annotator].tolist(),
            one.classes[one.label].tolist(),
            strict=True,
        )
    )
    rename = {"0": "zebra", "1": "ant", "2": "mule"}
    people = {"p1": "z", "p2": "y", "p3": "x"}
    models = {
        "model:m1": "model:d",
        "model:m2": "model:c",
        "model:m3": "model:b",
        "model:m4": "model:a",
    }
    np.random.default_rng(0).shuffle(rows)
    plain = judge(one.with_codes(), resamples=50).as_dict()
    renamed = [(item, {**people, **models}[who], rename[label]) for item, who, label in rows]
    item, who, label = zip(*renamed, strict=True)
    other = judge(
        Annotations.from_columns(item, who, label, items=one.items.tolist()).with_kinds(),
        resamples=50,
    ).as_dict()
    short = {old.removeprefix("model:"): new.removeprefix("model:") for old, new in models.items()}
    for name in ("replacement", "judges"):
        there = {row["judge"]: row for row in other[name]}
        for row in plain[name]:
            again = there[short[row["judge"]]]
            for key, value in row.items():
                if isinstance(value, float):
                    assert again[key] == pytest.approx(value, abs=1e-9), key
    shares = {row["label"]: row for row in other["shares"]}
    for row in plain["shares"]:
        for key in ("judge_share", "estimate", "low", "high", "people"):
            assert shares[rename[row["label"]]][key] == pytest.approx(row[key], abs=1e-9)
    assert other["pool"]["worth"] == pytest.approx(plain["pool"]["worth"], rel=1e-3)
    assert other["panel"]["worth"] == pytest.approx(plain["panel"]["worth"])


def test_an_answer_repeated_is_one_voice():
    once = simulate_judges(n_items=100, repeats=1, seed=4).annotations
    model = once.is_kind("model")[once.annotator]
    names = (once.items[once.item], once.annotators[once.annotator], once.classes[once.label])
    columns = [[*one.tolist(), *one[model].tolist()] for one in names]
    twice = Annotations.from_columns(*columns).with_kinds()
    one, two = (judge(each, resamples=20) for each in (once.with_codes(), twice))
    for left, right in zip(one.judges, two.judges, strict=True):
        assert left.agreement == pytest.approx(right.agreement)
        assert math.isnan(left.consistency)
        assert right.consistency == 1.0
    assert one.panel.worth == pytest.approx(two.panel.worth)
    for left, right in zip(one.replacement.models, two.replacement.models, strict=True):
        assert left.advantage == pytest.approx(right.advantage)


def test_a_judge_that_answers_differently_when_asked_again_is_less_consistent():
    found = judge(simulate_judges(n_items=200, repeats=3, seed=4).annotations, resamples=5)
    assert all(0.5 < one.consistency < 1 for one in found.judges)
    assert any(
        one.startswith("Asked again, m1 gives the same answer in ") for one in found.sentences
    )


def test_without_a_model_the_annotators_are_listed():
    annotations = Annotations.from_columns("aabb", ["gpt-4o", "ann"] * 2, "0110")
    with pytest.raises(DataError, match=r"no annotator is known to be a model; .* ann, gpt-4o"):
        judge(annotations)
    assert judge(annotations, models=["gpt*"], resamples=5).data.judge_names == ["gpt-4o"]


def test_classes_that_only_one_kind_uses_are_named():
    rows = [
        ("a", "ann", "yes"),
        ("a", "model:m", "no"),
        ("b", "ann", "n/a"),
        ("b", "model:m", "yes"),
    ]
    item, who, label = zip(*rows, strict=True)
    found = judge(Annotations.from_columns(item, who, label).with_kinds(), resamples=5)
    assert found.only_people.tolist() == ["n/a"]
    assert found.only_models.tolist() == ["no"]
    assert (
        "Only people use the label 'n/a' (1 time): no label of models ever equals it."
        in found.sentences
    )


def test_every_question_is_a_result_that_shows_itself(capsys):
    drawn = simulate_judges(n_items=200, n_labelled=120, n_classes=3, seed=1).annotations
    found = judge(drawn, by=["ab"[k % 2] for k in range(200)], resamples=10)
    questions = {"replacement", "judges", "rates", "panel", "escalation", "transport"}
    for name in (*questions, "pool", "pair_biases"):
        result = getattr(found, name)
        result.show()
        printed = " ".join(capsys.readouterr().out.split())
        assert all(" ".join(sentence.split()) in printed for sentence in result.sentences)
        assert bool(result.sentences) == (name != "pair_biases")
        json.dumps(result.as_dict(), allow_nan=False)
        assert result.to_polars().shape == result.to_pandas().shape
    assert found.escalation.to_polars().columns == ["item", "doubt", "audit"]
    assert found.to_polars()["judge"].to_list() == found.data.judge_names
    assert set(found.figures) == {"judges", "correlation", "shares", "escalation"}
    assert found.rates.plot().title == "Shares"


def test_the_file_with_the_items_to_check_is_named():
    found = judge(simulate_judges(n_items=300, n_labelled=150, seed=1).annotations, resamples=5)
    (plain,) = found.questions["check"].text
    (named,) = found.with_checks_in("check.csv").questions["check"].text
    assert named == plain.replace("most doubtful items:", "items in check.csv:") != plain


def test_code_is_reported_but_in_no_panel():
    drawn = simulate_judges(n_items=120, n_judges=2, seed=1).annotations
    kinds = ["model", "code", "person", "person", "person"]
    found = judge(drawn.with_kinds(kinds), resamples=10)
    assert [(one.judge, one.kind) for one in found.judges] == [("m1", "model"), ("m2", "code")]
    assert found.panel is None


def test_hostile_names_and_labels_are_only_names():
    names = ["model:<script>alert(1)</script>", "model:a\nb", "model:%s{0}", "__proto__", "ann"]
    rng = np.random.default_rng(0)
    rows = [
        (f"i{k}", who, ("=1+1", "constructor")[rng.integers(2)]) for k in range(80) for who in names
    ]
    item, who, label = zip(*rows, strict=True)
    from dissensus.judging.sections import JudgingReport

    found = judge(Annotations.from_columns(item, who, label).with_kinds(), resamples=10)
    page = JudgingReport(found, "<b>").page()
    assert "<script>alert(1)" not in page
    assert found.as_dict()["models"] == [name.removeprefix("model:") for name in sorted(names[:3])]


def test_nothing_is_claimed_from_one_item():
    annotations = Annotations.from_columns("aaa", ["ann", "model:m", "model:n"], "001").with_kinds()
    found = judge(annotations, resamples=5)
    assert sum("This cannot be told from" in sentence for sentence in found.sentences) >= 3
    assert found.as_dict()["pool"]["learned"] is False


def test_without_human_labels_models_that_agree_too_much_are_named():
    drawn = simulate_judges(n_items=300, n_labelled=0, n_judges=8, shared=0.0, n_classes=4, seed=1)
    one = drawn.annotations
    copied = one.annotator == 0
    rows = zip(
        one.items[one.item].tolist(),
        one.annotators[one.annotator].tolist(),
        one.classes[one.label].tolist(),
        strict=True,
    )
    item, who, label = zip(*rows, strict=True)
    item += tuple(one.items[one.item[copied]].tolist())
    who += ("model:copy",) * int(copied.sum())
    label += tuple(one.classes[one.label[copied]].tolist())
    found = judge(Annotations.from_columns(item, who, label).with_kinds(), resamples=5)
    assert any("model:copy and model:m1 agree more" in sentence for sentence in found.sentences)


# Sentences


def test_the_sentence_for_too_few_labels():
    assert too_few(20, 50) == "This cannot be told from 20 labels: 50 would do."


def test_sentences_of_a_published_set():
    from dissensus.formats.side_tables import read_items

    path = shared_path("alt_framing")
    cluster = {item: row["cluster"] for item, row in read_items(path / "tasks.csv.gz").items()}
    found = judge(shared_set("alt_framing"), cluster=cluster, epsilon=0.15, resamples=100)
    assert found.questions["replacement"].text[0] == (
        "gpt-4o may replace an annotator here: it is no worse than 4 of 4 annotators at agreeing "
        "with the others, at a tolerance of 0.15 (0.05 would do); this holds in 100 of 100 "
        "resamples. 4 of 4 people pass the same test."
    )
    assert re.fullmatch(
        r"gpt-4o agrees with a person on 77 % of items \(7\d to 7\d\); two people agree on 79 %\.",
        found.questions["judges"].text[0],
    )
    assert list(found.questions["labels"].text) == [
        "Only people use the label 'n/a: problem is resolved' (8 times): no label of models ever "
        "equals it."
    ]


def test_the_sentence_about_a_corrected_share():
    data = shared_set("alt_framing")
    one = data.subset(annotators=[*data.annotators[data.is_kind("person")], "model:gpt-4o"])
    rng = np.random.default_rng(0)
    labelled = np.isin(one.item, rng.choice(one.n_items, 200, replace=False))
    found = judge(one.keep(labelled | one.is_kind("model")[one.annotator]), resamples=10)
    sentence = next(line for line in found.questions["rates"].text if " yes. " in line)
    assert re.fullmatch(
        r"gpt-4o says 38 % yes\. Corrected by 200 human labels: \d\d % \(\d\d to \d\d\)\. "
        r"Human labels alone: \d\d to \d\d\.",
        sentence,
    )


def test_the_sentence_about_shared_mistakes():
    found = judge(shared_set("alt_wax"), resamples=50)
    assert re.fullmatch(
        r"Your 6 judges make the same mistakes: they are worth about 2 independent ones "
        r"\(1\.\d to 2\.\d\); on an item, about 4(\.\d)? people\.",
        found.questions["panel"].text[0],
    )


def test_the_sentence_about_position():
    path = shared_path("llmbar")
    annotations = read(path / "answers.csv.gz")
    annotations = annotations.subset(annotators=["model:ChatGPT/Vanilla"])
    found = judge(annotations, truth=read_truth(path / "truth.csv.gz"), resamples=10)
    assert list(found.questions["pairs"].text) == [
        "ChatGPT/Vanilla prefers whatever is shown first, by 16 points (13 to 19); 37 % of its "
        "answers change with the order."
    ]


# Requirements


def test_a_requirement_holds_only_at_the_unfavourable_end():
    drawn = simulate_judges(n_items=500, n_labelled=300, judge_accuracy=0.9, seed=1)
    found = judge(drawn.annotations, resamples=50)
    share = next(one for one in found.shares if one.label == "1")
    middle = (share.low + share.estimate) / 2
    assert check_requirement(found, f"share(1) >= {share.low - 0.01:.4f}").holds
    assert not check_requirement(found, f"share(1) >= {middle:.4f}").holds
    assert not check_requirement(found, f"share(1) <= {share.estimate:.4f}").holds
    assert check_requirement(found, f"share(1) < {100 * share.high + 1:.2f} %").holds
    assert check_requirement(found, "agreement(m1) >= 0.5").holds
    assert check_requirement(found, "panel >= 1").holds


def test_a_requirement_that_cannot_be_computed_does_not_hold():
    annotations = Annotations.from_columns("aab", ["ann", "model:m", "model:m"], "001").with_kinds()
    found = judge(annotations, resamples=5)
    for text in ("replaces(m)", "share(0) >= 0.1", "panel >= 1"):
        outcome = check_requirement(found, text)
        assert outcome.holds is None
        assert "cannot be told" in outcome.sentence


@pytest.mark.parametrize(
    "text",
    [
        *("", "replace(m)", "share >= 0.5", "share(0)", "replaces(m) >= 1", "share(0) >= x"),
        *("mean >= 1", "share(nothing) >= 0.1", "agreement(nobody) >= 0.1", "eval(1)"),
    ],
)
def test_a_requirement_that_makes_no_sense_is_refused_in_one_line(text):
    annotations = Annotations.from_columns("aab", ["ann", "model:m", "model:m"], "001").with_kinds()
    with pytest.raises(OptionError) as problem:
        check_requirement(judge(annotations, resamples=5), text)
    assert "\n" not in str(problem.value)


def test_numbers_have_means_and_no_shares():
    rng = np.random.default_rng(0)
    y = rng.normal(size=60).round(3)
    f = (y + rng.normal(size=60) / 2).round(3)
    found = judge(numbers(y, f, rng.normal(size=200).round(3)), resamples=10)
    assert not found.shares
    assert found.pool is None
    (mean,) = found.means
    assert mean.low < mean.estimate < mean.high
    assert mean.equivalent > 60
    assert any("100 human labels with the models count like" in one for one in found.sentences)
    assert check_requirement(found, "mean >= -1").holds
    assert true_shares(mixed(numbers([1, 2], [1, 2]).with_scale("nominal")))[0].problem == "few"
