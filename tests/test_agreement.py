import csv
import json
import math
import warnings
from collections import Counter
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import Annotations, DataError, Numbers, OptionError, agree
from dissensus.agreement import (
    brennan_prediger,
    cluster,
    cohen_kappa,
    conger_kappa,
    find_measure,
    fleiss_kappa,
    gwet_ac,
    in_words,
    item_agreement,
    krippendorff_alpha,
    measures,
    pairwise,
    percent_agreement,
    randolph_kappa,
    scott_pi,
    split_options,
)
from dissensus.agreement._joint import Panel
from dissensus.agreement._votes import count_votes
from dissensus.agreement.differences import create_difference
from dissensus.agreement.intervals import blocks, draws, interval_of

from .support import annotation_rows, rows_of, run, shared
from .support import relation as from_rows

# Krippendorff (2011), four coders and twelve units; 0 where a coder is silent.
TEXTBOOK = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)

units = st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=8)


def relation(labels):
    rows = [
        (item, position, label)
        for item, unit in enumerate(labels)
        for position, label in enumerate(unit)
    ]
    item, annotator, label = np.array(rows, dtype=int).reshape(-1, 3).T
    return Annotations.from_codes(
        item, annotator, label, items=len(labels), annotators=5, classes=4
    )


def shares_by_hand(labels):
    return [
        np.mean([a == b for a, b in permutations(unit, 2)]) if len(unit) > 1 else math.nan
        for unit in labels
    ]


def alpha_by_hand(labels):
    """Alpha from the matrix of coincidences, pair by pair."""
    pairs = np.zeros((4, 4))
    for unit in labels:
        for a, b in permutations(unit, 2):
            pairs[a, b] += 1 / (len(unit) - 1)
    count = pairs.sum(axis=1)
    total = count.sum()
    observed = total - np.trace(pairs)
    expected = (total**2 - (count**2).sum()) / max(total - 1, 1)
    return 1 - observed / expected if expected > 1e-9 else math.nan


def test_textbook_values():
    annotations = Annotations.from_matrix(TEXTBOOK.T, missing=0)
    assert krippendorff_alpha(annotations) == pytest.approx(0.7434, abs=5e-5)
    assert percent_agreement(annotations) == pytest.approx(0.81818, abs=5e-6)


@given(units)
def test_every_share_is_that_of_the_pairs(labels):
    np.testing.assert_allclose(item_agreement(relation(labels)), shares_by_hand(labels))


@given(units)
def test_percent_is_the_mean_over_items_with_a_pair(labels):
    shares = [share for share in shares_by_hand(labels) if not math.isnan(share)]
    expected = sum(shares) / len(shares) if shares else math.nan
    assert percent_agreement(relation(labels)) == pytest.approx(expected, nan_ok=True)


@given(units)
def test_alpha_is_that_of_the_coincidences(labels):
    expected = alpha_by_hand(labels)
    assert krippendorff_alpha(relation(labels)) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8).filter(lambda x: len(set(x)) > 1))
def test_alpha_of_those_who_always_agree_is_one(truth):
    assert krippendorff_alpha(relation([[label] * 3 for label in truth])) == 1


def test_alpha_of_those_who_never_agree_is_below_zero():
    assert krippendorff_alpha(relation([[0, 1], [1, 0]])) == pytest.approx(-0.5)


def test_without_variation_alpha_is_undefined_and_percent_is_not():
    annotations = relation([[2, 2], [2, 2, 2]])
    assert math.isnan(krippendorff_alpha(annotations))
    assert percent_agreement(annotations) == 1


@pytest.mark.parametrize("labels", [[[]], [[1], [2], []]])
def test_without_a_pair_all_is_undefined(labels):
    annotations = relation(labels)
    assert math.isnan(krippendorff_alpha(annotations))
    assert math.isnan(percent_agreement(annotations))
    assert np.isnan(item_agreement(annotations)).all()


def test_the_annotations_stay_as_they_are():
    annotations = relation([[0, 1, 0], [2, 2]])
    before = annotations.index.copy(), annotations.label.copy()
    item_agreement(annotations)
    np.testing.assert_array_equal(annotations.index, before[0])
    np.testing.assert_array_equal(annotations.label, before[1])


def test_words_change_at_the_documented_limits():
    limits = [-0.01, 0, 0.19, 0.2, 0.39, 0.4, 0.59, 0.6, 0.79, 0.8, 1.0]
    words = ["poor", *["slight"] * 2, *["fair"] * 2, *["moderate"] * 2, *["substantial"] * 2]
    assert [in_words(alpha) for alpha in limits] == [*words, *["almost perfect"] * 2]
    assert in_words(math.nan) == "undefined"


# Fleiss (1971): ten units, fourteen raters, five categories.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
WEIGHTS = ["identity", "linear", "quadratic", "ordinal"]
COUNTED = {
    "percent": percent_agreement,
    "fleiss": fleiss_kappa,
    "ac1": gwet_ac,
    "brennan-prediger": brennan_prediger,
    "conger": conger_kappa,
    "cohen": cohen_kappa,
    "scott": scott_pi,
}


def textbook():
    return Annotations.from_matrix(TEXTBOOK.T, missing=0)


def two_by_two(table):
    labels = [(a, b) for (a, b), n in np.ndenumerate(np.array(table)) for _ in range(n)]
    return Annotations.from_matrix(labels)


def crowd(seed, n_items=40, n_annotators=5, n_classes=4, missing=0.3, skill=0.6):
    """Draw a table of labels 1, 2, 3 …, NaN where an annotator is silent."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, n_classes + 1, size=(n_items, 1))
    other = rng.integers(1, n_classes + 1, size=(n_items, n_annotators))
    table = np.where(rng.random(other.shape) < skill, truth, other).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    table[np.arange(n_classes), 0] = np.arange(1, n_classes + 1)  # every class is used
    return table


def weight_matrix(name, x):
    """Weights as Gwet writes them, cell by cell."""
    k = len(x)
    out = np.eye(k)
    for a, b in product(range(k), range(k)):
        steps = abs(a - b)
        out[a, b] = {
            "identity": float(a == b),
            "linear": 1 - abs(x[a] - x[b]) / (x[-1] - x[0]),
            "quadratic": 1 - (x[a] - x[b]) ** 2 / (x[-1] - x[0]) ** 2,
            "ordinal": 1 - math.comb(steps + 1, 2) / math.comb(k, 2),
        }[name]
    return out


def by_hand(annotations, name, weights):
    """The coefficients as the notes define them, in loops over names."""
    classes = annotations.classes.tolist()
    w = weight_matrix(weights, [float(one) for one in classes])
    rows = [(item, who, classes.index(label)) for item, who, label in rows_of(annotations)]
    units = {}
    for item, who, label in rows:
        units.setdefault(item, []).append((who, label))
    pair_means = [
        np.mean([w[a, b] for (_, a), (_, b) in permutations(unit, 2)])
        for unit in units.values()
        if len(unit) > 1
    ]
    if name in ("cohen", "scott"):
        return mean_of_pairs_by_hand(units, w, name)
    if not pair_means:
        return math.nan
    pa, k = np.mean(pair_means), len(classes)
    shares = np.mean(
        [np.bincount([lab for _, lab in unit], minlength=k) / len(unit) for unit in units.values()],
        axis=0,
    )
    if name == "percent":
        return pa
    if name == "fleiss":
        pe = shares @ w @ shares
    elif name == "ac1":
        pe = w.sum() / (k * (k - 1)) * (shares * (1 - shares)).sum()
    elif name == "brennan-prediger":
        pe = w.sum() / k**2
    else:
        own = {}
        for _, who, label in rows:
            own.setdefault(who, np.zeros(k))[label] += 1
        own = [one / one.sum() for one in own.values()]
        if len(own) < 2:
            return math.nan
        pe = np.mean([a @ w @ b for a, b in permutations(own, 2)])
    return beyond(pa, pe)


def beyond(pa, pe):
    if 1 - pe < 1e-12:
        return 1.0 if 1 - pa < 1e-12 else math.nan
    return (pa - pe) / (1 - pe)


def mean_of_pairs_by_hand(units, w, name):
    tables = {}
    for unit in units.values():
        own = {}
        for who, label in unit:
            own.setdefault(who, []).append(label)
        for one, other in combinations(sorted(own), 2):
            table = tables.setdefault((one, other), np.zeros_like(w))
            for a, b in product(own[one], own[other]):
                table[a, b] += 1 / len(own[one]) / len(own[other])
    values = []
    for table in tables.values():
        p = table / table.sum()
        left, right = p.sum(axis=1), p.sum(axis=0)
        if name == "scott":
            left = right = (left + right) / 2
        values.append(beyond((w * p).sum(), left @ w @ right))
    values = [value for value in values if not math.isnan(value)]
    return np.mean(values) if values else math.nan


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("weights", WEIGHTS)
@settings(max_examples=30)
@given(rows=annotation_rows(classes="1249"))
def test_coefficients_are_those_of_loops_over_pairs(name, weights, rows):
    annotations = from_rows(rows, classes="1249")
    expected = by_hand(annotations, name, weights)
    assert COUNTED[name](annotations, weights=weights) == pytest.approx(
        expected, abs=1e-9, nan_ok=True
    )


def test_textbook_values_of_all_levels_and_weights():
    annotations = textbook()
    alpha = {"nominal": 0.7434, "ordinal": 0.8154, "interval": 0.8491, "ratio": 0.7974}
    for level, value in alpha.items():
        assert krippendorff_alpha(annotations, level=level) == pytest.approx(value, abs=5e-5)
    printed = {
        "identity": (0.77544, 0.76117, 0.77273),
        "linear": (0.85874, 0.81794, 0.84848),
        "quadratic": (0.91400, 0.86494, 0.90152),
    }
    for weights, values in printed.items():
        found = [
            one(annotations, weights=weights) for one in (gwet_ac, fleiss_kappa, brennan_prediger)
        ]
        assert found == pytest.approx(values, abs=5e-6)


def test_published_kappas():
    raters = [np.repeat(np.arange(5), row) for row in FLEISS]
    assert fleiss_kappa(Annotations.from_matrix(raters)) == pytest.approx(0.2099, abs=5e-5)
    annotations = two_by_two([[20, 5], [10, 15]])
    assert cohen_kappa(annotations) == pytest.approx(0.4)
    assert scott_pi(annotations) == pytest.approx(0.3939, abs=5e-5)
    assert gwet_ac(annotations) == pytest.approx(0.4059, abs=5e-5)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=20))
def test_two_annotators_have_one_scott_fleiss_and_alpha(labels):
    annotations = Annotations.from_matrix(labels)
    pi, n = scott_pi(annotations), len(labels)
    assert fleiss_kappa(annotations) == pytest.approx(pi, abs=1e-9)
    if annotations.n_classes > 1:
        assert krippendorff_alpha(annotations) == pytest.approx(
            1 - (1 - pi) * (2 * n - 1) / (2 * n), abs=1e-9
        )


@pytest.mark.parametrize("name", [name for name in measures if name != "alpha"])
def test_where_nothing_can_differ_agreement_is_full(name):
    annotations = relation([[2, 2], [2, 2, 2]]).recode("2")
    assert agree(annotations, name, resamples=0)[name].value == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
def test_alpha_is_that_of_the_package_krippendorff(seed, level):
    krippendorff = pytest.importorskip("krippendorff")
    table = crowd(seed)
    expected = krippendorff.alpha(table.T, level_of_measurement=level)
    annotations = Annotations.from_matrix(table)
    assert krippendorff_alpha(annotations, level=level) == pytest.approx(expected, abs=1e-9)
    item, annotator = np.nonzero(~np.isnan(table))
    numbers = Numbers.from_columns(item, annotator, table[item, annotator])
    assert krippendorff_alpha(numbers, level=level) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weights", [*WEIGHTS, "ratio", "bipolar", "circular"])
def test_coefficients_and_errors_are_those_of_irrcac(seed, weights):
    raw = pytest.importorskip("irrCAC.raw")
    import pandas as pd

    table = crowd(seed)
    annotations = Annotations.from_matrix(table)
    peers = {
        "ac1": "gwet",
        "fleiss": "fleiss",
        "brennan-prediger": "bp",
        "conger": "conger",
        "alpha": "krippendorff",
    }
    level = {"identity": "nominal", "quadratic": "interval"}.get(weights, weights)
    if weights in ("linear", "ordinal"):  # its alpha has other weights than Krippendorff's
        level = "nominal"
        del peers["alpha"]
    found = agree(annotations, list(peers), level=level, weights=weights, resamples=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it calls pandas in an old way
        classes = [1.0, 2.0, 3.0, 4.0]  # told, because with pandas 3 it takes NaN for one
        theirs = raw.CAC(pd.DataFrame(table), weights=weights, categories=classes, digits=15)
        for ours, name in peers.items():
            expected = getattr(theirs, name)()["est"]
            assert found[ours].value == pytest.approx(expected["coefficient_value"], abs=1e-9)
            if ours not in ("conger", "alpha"):  # these have the jackknife's
                assert found[ours].error == pytest.approx(expected["se"], abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_kappas_are_those_of_statsmodels(seed):
    peer = pytest.importorskip("statsmodels.stats.inter_rater")
    annotations = Annotations.from_matrix(crowd(seed, missing=0))
    votes = annotations.votes()
    assert fleiss_kappa(annotations) == pytest.approx(peer.fleiss_kappa(votes), abs=1e-9)
    assert randolph_kappa(annotations) == pytest.approx(
        peer.fleiss_kappa(votes, "randolph"), abs=1e-9
    )
    both = crowd(seed, n_annotators=2, missing=0).astype(int)
    table = np.zeros((4, 4))
    np.add.at(table, tuple(both.T - 1), 1)
    annotations = Annotations.from_matrix(both)
    for ours, theirs in (("identity", None), ("linear", "linear"), ("quadratic", "quadratic")):
        found = agree(annotations, "cohen", weights=ours, resamples=0)["cohen"]
        expected = peer.cohens_kappa(table, wt=theirs)
        assert found.value == pytest.approx(expected.kappa, abs=1e-9)
        assert found.error == pytest.approx(expected.std_kappa, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_matrix_of_kappas_is_that_of_scikit_learn(seed):
    peer = pytest.importorskip("sklearn.metrics")
    table = crowd(seed)
    annotations = Annotations.from_matrix(table)
    for weights in ("identity", "linear", "quadratic"):
        found = pairwise(annotations, weights=weights, min_overlap=2)
        for one, other in combinations(range(table.shape[1]), 2):
            both = ~np.isnan(table[:, one]) & ~np.isnan(table[:, other])
            expected = peer.cohen_kappa_score(
                *table[both][:, [one, other]].T.astype(int),
                labels=[1, 2, 3, 4],
                weights=None if weights == "identity" else weights,
            )
            assert found.matrix()[one, other] == pytest.approx(expected, abs=1e-9)
            assert found.overlaps()[one, other] == both.sum()


@pytest.mark.parametrize("seed", range(2))
def test_coefficients_are_those_of_nltk(seed):
    peer = pytest.importorskip("nltk.metrics.agreement")
    table = crowd(seed, n_items=20, missing=0).astype(int)
    rows = [(who, item, table[item, who]) for item, who in np.ndindex(*table.shape)]
    task, annotations = peer.AnnotationTask(rows), Annotations.from_matrix(table)
    assert krippendorff_alpha(annotations) == pytest.approx(task.alpha(), abs=1e-9)
    assert fleiss_kappa(annotations) == pytest.approx(task.pi(), abs=1e-9)  # over all annotators
    assert brennan_prediger(annotations) == pytest.approx(task.S(), abs=1e-9)
    assert cohen_kappa(annotations) == pytest.approx(task.kappa(), abs=1e-9)
    assert conger_kappa(annotations) == pytest.approx(task.multi_kappa(), abs=1e-9)
    assert percent_agreement(annotations) == pytest.approx(task.avg_Ao(), abs=1e-9)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
@given(rows=annotation_rows(classes="1249"))
@settings(max_examples=25)
def test_a_draw_is_the_measure_of_the_items_drawn(level, rows):
    annotations = from_rows(rows, classes="1249")
    rng = np.random.default_rng(len(rows))
    which = rng.integers(annotations.n_items, size=annotations.n_items)
    weights = np.bincount(which, minlength=annotations.n_items)[None].astype(float)
    chosen = [one for one in measures.values() if not one.by_pairs]
    panel = Panel(annotations, chosen, level=level, by_item=True)
    again = Panel(annotations.take(which), chosen, level=level, by_item=True)
    np.testing.assert_allclose(panel.under(weights)[:, 0], again.values, atol=1e-9)


def test_a_draw_of_pairs_is_the_measure_of_the_items_drawn():
    annotations = Annotations.from_matrix(crowd(3))
    which = np.random.default_rng(0).integers(annotations.n_items, size=annotations.n_items)
    weights = np.bincount(which, minlength=annotations.n_items)[None].astype(float)
    chosen = [measures["cohen"], measures["scott"]]
    found = Panel(annotations, chosen).under(weights)[:, 0]
    np.testing.assert_allclose(found, Panel(annotations.take(which), chosen).values, atol=1e-9)


@given(rows=annotation_rows())
def test_items_that_look_alike_are_put_together(rows):
    annotations = from_rows(rows)
    whole, once = count_votes(annotations), count_votes(annotations).distinct()
    looks = Counter(map(tuple, whole.table.toarray().tolist()))
    kept = dict(zip(map(tuple, once.table.toarray().tolist()), once.times.tolist(), strict=True))
    assert kept == looks


@pytest.mark.parametrize("times", [np.ones(50, int), np.array([3, 1, 2]), np.array([900, 100])])
def test_draws_have_as_many_items_and_their_frequencies(times):
    drawn = np.concatenate(list(draws(times, 2000, seed=0)))
    assert drawn.shape == (2000, len(times))
    assert (drawn.sum(axis=1) == times.sum()).all()
    spread = np.sqrt(times * (1 - times / times.sum()))
    np.testing.assert_allclose(drawn.mean(axis=0), times, atol=5 * spread.max() / np.sqrt(2000))
    np.testing.assert_allclose(drawn.std(axis=0), spread, rtol=0.15)


def test_blocks_leave_out_every_item_once():
    times = np.array([3, 1, 2])
    left = blocks(times, seed=0)
    assert left.shape == (6, 3)
    np.testing.assert_array_equal((times - left).sum(axis=0), times)
    np.testing.assert_array_equal((times - left).sum(axis=1), 1)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@given(rows=annotation_rows(classes="1249", annotators="wxyz"))
@settings(max_examples=15)
def test_without_an_annotator_is_what_the_others_have(level, rows):
    annotations = from_rows(rows, classes="1249")
    chosen = list(measures.values())
    found = Panel(annotations, chosen, level=level).without_each()
    for who in range(annotations.n_annotators):
        rest = annotations.keep(annotations.annotator != who)
        expected = Panel(rest, chosen, level=level).values
        np.testing.assert_allclose(found[:, who], expected, atol=1e-9)


@given(rows=annotation_rows(annotators="wxy"))
def test_agreement_with_others_counts_every_pair_with_somebody_else(rows):
    annotations = from_rows(rows)
    found = {
        one.name: one.with_others for one in agree(annotations, by="annotator", resamples=0).parts
    }
    summary = rows_of(annotations)
    for who in annotations.annotators.tolist():
        same = [
            label == other
            for item, name, label in summary
            for where, whose, other in summary
            if name == who and whose != who and where == item
        ]
        assert found[who] == pytest.approx(np.mean(same) if same else math.nan, nan_ok=True)


def test_a_class_against_the_rest_is_a_question_of_its_own():
    annotations = textbook()
    found = agree(annotations, by="class", resamples=50)
    assert [part.name for part in found.parts] == list("12345")
    for part in found.parts:
        matrix = np.where(int(part.name) == TEXTBOOK, 2, np.minimum(TEXTBOOK, 1))
        alone = Annotations.from_matrix(matrix.T, missing=0)
        values = {one.measure: one.value for one in part.estimates}
        assert values["alpha"] == pytest.approx(krippendorff_alpha(alone))
        assert values["fleiss"] == pytest.approx(fleiss_kappa(alone))
        assert part.n_labels == (int(part.name) == TEXTBOOK).sum()


def test_items_with_least_agreement_stand_first():
    found = agree(textbook(), by="item", resamples=0)
    assert [part.agreement for part in found.parts][:2] == [0, 0.5]
    assert math.isnan(found.parts[-1].agreement)
    assert found.parts[0].name == "5"


def test_a_seed_decides_and_the_order_of_items_does_not():
    table = crowd(0)
    one = agree(Annotations.from_matrix(table), seed=3, resamples=100)
    assert one == agree(Annotations.from_matrix(table), seed=3, resamples=100)
    assert one != agree(Annotations.from_matrix(table), seed=4, resamples=100)
    other = agree(Annotations.from_matrix(table[::-1]), seed=3, resamples=100)
    for here, there in zip(one.estimates, other.estimates, strict=True):
        assert here[1:4] == pytest.approx(there[1:4], abs=1e-12)


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_intervals_hold_the_value_and_widen_with_confidence(interval):
    annotations = Annotations.from_matrix(crowd(1))
    names = [name for name in measures if name not in ("cohen", "scott")]
    narrow = agree(annotations, names, interval=interval, confidence=0.5, resamples=300)
    wide = agree(annotations, names, interval=interval, confidence=0.99, resamples=300)
    for inner, outer in zip(narrow.estimates, wide.estimates, strict=True):
        assert outer.low < inner.low < inner.value < inner.high < outer.high <= 1
        assert 2 * inner.error < outer.high - outer.low < 9 * inner.error


def test_bca_of_a_mean_is_that_of_scipy():
    from scipy.stats import bootstrap

    rng = np.random.default_rng(0)
    data = rng.exponential(size=60)
    theirs = bootstrap((data,), np.mean, n_resamples=20_000, rng=1, method="BCa")
    weights = np.concatenate(list(draws(np.ones(60, int), 20_000, seed=0)))
    left = blocks(np.ones(60, int), seed=0)
    low, high, _ = interval_of(data.mean(), weights @ data / 60, 0.95, left @ data / 59)
    assert (low, high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.01)


def test_draws_without_a_value_are_left_out_and_counted():
    annotations = relation([[0, 0], [0, 0], [0, 1]])
    found = agree(annotations, ["alpha", "percent"], resamples=200)
    dropped = found["alpha"].dropped
    assert 30 < dropped < 90  # (2/3)^3 of the draws have one class only
    assert found["percent"].dropped == 0
    assert f"{dropped} resamples gave no alpha and were left out" in found.notes


def test_jackknife_error_of_alpha_is_close_to_its_spread_over_samples():
    annotations = [Annotations.from_matrix(crowd(seed, n_items=60)) for seed in range(60)]
    found = [agree(one, "alpha", resamples=0)["alpha"] for one in annotations]
    spread = np.std([one.value for one in found])
    assert np.mean([one.error for one in found]) == pytest.approx(spread, rel=0.25)


def test_a_skewed_class_is_named():
    annotations = two_by_two([[95, 2], [3, 0]])
    found = agree(annotations, resamples=0)
    assert found["alpha"].value < 0 < 0.9 < found["ac1"].value
    assert any("95% of pairs agree" in note and "read ac1" in note for note in found.notes)
    assert not any("pairs agree" in note for note in agree(textbook(), resamples=0).notes)


def test_classes_without_numbers_stand_for_their_place_and_this_is_said():
    names = np.array(["", "bad", "fair", "good", "great", "superb"])
    annotations = Annotations.from_matrix(names[TEXTBOOK.T])
    found = agree(annotations, level="interval", resamples=0)
    assert found["alpha"].value == pytest.approx(0.8491, abs=5e-5)
    assert any("stands for its place" in note for note in found.notes)
    order = agree(annotations, level="ordinal", resamples=0).notes
    assert any("bad, fair, good, great, superb" in note for note in order)


def test_a_matrix_of_weights_or_differences_does_what_its_name_does():
    annotations = textbook()
    table = weight_matrix("linear", np.arange(5))
    for one in (gwet_ac, fleiss_kappa, conger_kappa, cohen_kappa):
        assert one(annotations, weights=table) == pytest.approx(one(annotations, weights="linear"))
    square = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
    assert krippendorff_alpha(annotations, level=square) == pytest.approx(0.8491, abs=5e-5)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (np.eye(3), "3 × 3 for 5 classes"),
        (np.triu(np.ones((5, 5))), "symmetric"),
        (np.zeros((5, 5)), "the diagonal says otherwise"),
    ],
)
def test_weights_that_cannot_be_are_told(table, summary):
    with pytest.raises(OptionError, match=summary):
        fleiss_kappa(textbook(), weights=table)


def test_squares_far_from_zero_lose_no_digits():
    table = np.where(TEXTBOOK > 0, TEXTBOOK + 10**9, 0)
    annotations = Annotations.from_matrix(table.T, missing=0)
    assert krippendorff_alpha(annotations, level="interval") == pytest.approx(
        krippendorff_alpha(textbook(), level="interval"), abs=1e-9
    )


def test_negative_numbers_have_no_ratio():
    numbers = Numbers.from_columns("aabb", "xyxy", [-1, 2, 3, 4])
    with pytest.raises(OptionError, match="at least 0, found -1"):
        krippendorff_alpha(numbers, level="ratio")


def test_numbers_agree_by_interval_unless_told():
    numbers = Numbers.from_columns("aabbcc", "xyxyxy", [1, 1.5, 3, 3.25, 7, 6])
    found = agree(numbers, resamples=100)
    assert [one.measure for one in found.estimates] == ["alpha"]
    assert found.level == "interval"
    assert found["alpha"].value == pytest.approx(krippendorff_alpha(numbers))


def test_options_are_questions_of_their_own_and_the_mean_is_told():
    rows = [
        ("a", "x", "cat|dog"),
        ("a", "y", "dog"),
        ("b", "x", "cat"),
        ("b", "y", "cat"),
        ("c", "x", "bird | dog"),
        ("c", "y", "dog|bird"),
    ]
    annotations = from_rows(rows)
    options = split_options(annotations)
    assert list(options) == ["bird", "cat", "dog"]
    assert rows_of(options["bird"])[-2:] == [("c", "x", "yes"), ("c", "y", "yes")]
    found = agree(annotations, "percent", multiple=True, resamples=50)
    shares = [part.estimates[0].value for part in found.parts]
    assert shares == pytest.approx([1, 2 / 3, 1])
    assert found["percent"].value == pytest.approx(np.mean(shares))
    assert [part.n_labels for part in found.parts] == [2, 3, 4]


def test_an_empty_choice_is_no_to_every_option():
    annotations = Annotations.from_codes(
        np.array([0, 0]), np.array([0, 1]), np.array([0, 1]), items=1, annotators=2,
        classes=["", "cat"],
    )  # fmt: skip
    assert rows_of(split_options(annotations)["cat"]) == [("0", "0", "no"), ("0", "1", "yes")]


def test_pairs_with_few_common_items_have_no_value_and_shrink():
    annotations = Annotations.from_matrix(crowd(0, missing=0.5))
    few, many = pairwise(annotations, min_overlap=1), pairwise(annotations, min_overlap=12)
    assert (few.overlap == many.overlap).all()
    np.testing.assert_array_equal(np.isnan(many.value), many.overlap < 12)
    drawn = pairwise(annotations, min_overlap=1, shrinkage=10)
    np.testing.assert_allclose(drawn.value, few.value * few.overlap / (few.overlap + 10))
    assert pairwise(annotations).min_overlap == 5
    assert pairwise(annotations.recode("12345")).min_overlap == 10


def test_groups_of_annotators_are_found_again():
    rng = np.random.default_rng(0)
    views = rng.integers(3, size=(200, 2))  # two ways to see every item
    group = np.array([0] * 7 + [1] * 5)
    labels = np.where(rng.random((200, 12)) < 0.8, views[:, group], rng.integers(3, size=(200, 12)))
    labels[rng.random(labels.shape) < 0.6] = -1
    found = cluster(pairwise(Annotations.from_matrix(labels)))
    np.testing.assert_array_equal(found.group, group)  # the larger group comes first
    assert found.n_clusters == 2
    assert sorted(found.order.tolist()) == list(range(12))
    assert (np.diff(group[found.order]) >= 0).all()


def test_silhouettes_are_those_of_scikit_learn():
    peer = pytest.importorskip("sklearn.metrics")
    from dissensus.agreement.clusters import silhouette

    rng = np.random.default_rng(0)
    apart = rng.random((15, 15))
    apart = apart + apart.T
    np.fill_diagonal(apart, 0)
    group = np.append(rng.integers(3, size=14), 3)
    expected = peer.silhouette_score(apart, group, metric="precomputed")
    assert silhouette(apart, group) == pytest.approx(expected)


def test_those_who_are_alike_make_no_groups_and_strangers_are_left_out():
    table = crowd(0, n_items=300, n_annotators=7, missing=0)
    table[:, 6] = np.nan
    table[0, 6] = 1
    found = cluster(pairwise(Annotations.from_matrix(table)))
    assert found.n_clusters == 1
    assert math.isnan(found.silhouette)
    assert found.group.tolist() == [0] * 6 + [-1]
    assert 6 not in found.order


def test_many_pairs_are_refused_before_memory_is_full():
    index = np.array([0, 40_000])
    annotations = Annotations(
        index=index,
        annotator=np.arange(40_000, dtype=np.uint16),
        label=np.zeros(40_000, np.uint8),
        items=np.array(["a"], np.dtypes.StringDType()),
        annotators=np.arange(40_000).astype(np.dtypes.StringDType()),
        classes=np.array(["0", "1"], np.dtypes.StringDType()),
    )
    with pytest.raises(OptionError, match="too many to look at two by two"):
        cohen_kappa(annotations)
    assert conger_kappa(annotations) == fleiss_kappa(annotations) == 1


def test_pairs_are_the_same_whether_looked_up_or_searched(monkeypatch):
    from dissensus.agreement import _meetings

    annotations = Annotations.from_matrix(crowd(0))
    before = pairwise(annotations, min_overlap=1)
    monkeypatch.setattr(_meetings, "_DENSE", 0)
    monkeypatch.setattr(_meetings, "_PIECE", 7)
    after = pairwise(annotations, min_overlap=1)
    np.testing.assert_allclose(before.value, after.value)
    assert (before.one == after.one).all()


def test_every_measure_has_its_words_and_no_two_share_a_name():
    names = [name for one in measures.values() for name in (one.name, *one.aliases)]
    assert len(names) == len(set(names))
    for one in measures.values():
        assert one.summary.endswith(".")
        assert all(find_measure(name) is one for name in (one.name, *one.aliases))
    assert find_measure("Krippendorff alpha").name == "alpha"
    with pytest.raises(OptionError, match="did you mean fleiss"):
        find_measure("fleis")
    with pytest.raises(OptionError, match="there are percent, alpha"):
        find_measure("xyz")


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"resamples": 1}, "resamples = 1"),
        ({"confidence": 1.5}, "confidence = 1.5"),
        ({"interval": "normal"}, "no interval 'normal'"),
        ({"level": "metric"}, "no level 'metric'"),
        ({"weights": "cubic"}, "no level or weights 'cubic'"),
        ({"by": "day"}, "by = 'day'"),
        ({"by": "item", "multiple": True}, "leave out `by`"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(wish, summary):
    with pytest.raises(OptionError, match=summary):
        agree(textbook(), **wish)


def test_without_labels_there_is_nothing_to_agree_on():
    with pytest.raises(DataError, match="no labels"):
        agree(from_rows([], classes="ab"))


def test_a_result_is_plain_for_json_with_none_for_nan():
    found = agree(relation([[1, 1], [1, 1]]), by="item", resamples=10)
    summary = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert summary["estimates"][1]["measure"] == "alpha"
    assert summary["estimates"][1]["value"] is None
    assert found["krippendorff"].measure == "alpha"
    with pytest.raises(KeyError):
        found["cohen"]


def test_real_data_agree_as_the_package_krippendorff_says():
    krippendorff = pytest.importorskip("krippendorff")
    annotations = shared("rte")
    expected = krippendorff.alpha(value_counts=annotations.votes(), level_of_measurement="nominal")
    assert krippendorff_alpha(annotations) == pytest.approx(expected, abs=1e-9)


@pytest.fixture
def answers(tmp_path):
    table = crowd(0, n_items=60)
    rows = [f"{i},{a},{table[i, a]:.0f}" for i, a in np.argwhere(~np.isnan(table))]
    (tmp_path / "answers.csv").write_text("item,annotator,label\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_the_command_says_what_the_library_says(answers):
    done = run("agree", "answers.csv", "--json", "--by", "annotator", "-m", "kappa", "-m", "alpha",
               "--level", "ordinal", "--resamples", 50, "--seed", 2, cwd=answers)  # fmt: skip
    summary = json.loads(done.stdout)
    annotations = Annotations.from_matrix(crowd(0, n_items=60))
    found = agree(
        annotations, ["cohen", "alpha"], level="ordinal", by="annotator", resamples=50, seed=2
    )
    assert summary == json.loads(json.dumps(found.as_dict()))


@pytest.mark.parametrize("more", [[], ["--by", "item"], ["--by", "class"], ["--pairs"]])
def test_tables_are_written_whole(answers, more):
    done = run("agree", "answers.csv", *more, "--resamples", 20, "-o", "t.csv", cwd=answers)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((answers / "t.csv").read_text("utf-8").splitlines()))
    expected = {"": 4, "item": 60, "class": 16, "pairs": 10}
    assert len(rows) == expected[more[-1].strip("-") if more else ""]
    run("agree", "answers.csv", *more, "--resamples", 20, "-o", "t.json", cwd=answers)
    assert len(json.loads((answers / "t.json").read_text())) == len(rows)
    assert b"alpha is " in done.stdout
    assert max(map(len, done.stdout.decode().splitlines())) <= 80


def test_the_command_takes_several_options(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\n1,x,a|b\n1,y,b\n2,x,a\n2,y,a\n")
    done = run("agree", "a.csv", "--multiple", "--json", cwd=tmp_path)
    summary = json.loads(done.stdout)
    assert [part["name"] for part in summary["parts"]] == ["a", "b"]
    assert summary["by"] == "option"


@pytest.mark.parametrize(
    ("ending", "begin"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<")]
)
def test_a_chart_is_drawn_and_needs_no_network(answers, ending, begin):
    done = run("agree", "answers.csv", "--chart", f"c.{ending}", "--resamples", 0, cwd=answers)
    assert done.returncode == 0, done.stderr
    body = (answers / f"c.{ending}").read_bytes()
    assert body.lstrip().startswith(begin)
    assert b"<script src" not in body


def test_a_chart_has_a_cell_for_every_pair_with_a_value():
    from dissensus.reporting.agreement_figures import pairs_chart

    annotations = Annotations.from_matrix(
        crowd(0, n_annotators=4), annotators=["</script>", "b" * 40, "c", "d"]
    )
    pairs = pairwise(annotations, min_overlap=1)
    cells = pairs_chart(pairs, cluster(pairs))["data"]["values"]
    assert len(cells) == 2 * pairs.known.sum()
    assert {cell["one"] for cell in cells} == {"</script>", "b" * 23 + "…", "c", "d"}


def test_a_name_cannot_end_the_script_of_a_page(tmp_path):
    from dissensus.reporting.agreement_figures import pairs_chart
    from dissensus.reporting.charts import save_chart

    names = ["</script><b>x", "<!--", "c<d", "d"]
    annotations = Annotations.from_matrix(crowd(0, n_annotators=4), annotators=names)
    pairs = pairwise(annotations, min_overlap=1)
    save_chart(pairs_chart(pairs, cluster(pairs)), tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text("utf-8")
    assert "</script><b>x" not in page
    assert r"\u003c/script\u003e\u003cb\u003ex" in page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--chart", "c.gif"], "a chart ends in .svg, .png, .html"),
        (["-o", "t.txt"], "written as .csv or .json"),
        (["-m", "nothing"], "no measure 'nothing'"),
        (["--pairs", "--by", "item"], "one at a time"),
        (["--multiple", "--pairs"], "pairs need one question"),
        (["--confidence", "2"], "confidence = 2.0"),
    ],
)
def test_the_command_ends_in_one_line(answers, arguments, summary):
    done = run("agree", "answers.csv", *arguments, cwd=answers)
    assert done.returncode == 2
    assert summary in done.stderr.decode()
    assert len(done.stderr.decode().splitlines()) == 1
    assert sorted(path.name for path in answers.iterdir()) == ["answers.csv"]


def test_differences_of_one_class_are_nothing():
    for name in ("nominal", "ordinal", "interval", "ratio", "linear", "circular", "bipolar"):
        assert create_difference(name, np.array(["3"])).total == 0
