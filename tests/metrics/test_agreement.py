"""Coefficients of agreement: textbook values, definitions and other packages."""

import math
import warnings
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import Annotations, Numbers, agree
from dissensus.metrics import (
    brennan_prediger,
    cohen_kappa,
    conger_kappa,
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
)

from ..support import annotation_rows, rows_of
from ..support import relation as from_rows

# Krippendorff (2011), four coders and twelve units; 0 where there is no label.
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


def test_textbook_values_of_all_scales_and_weights():
    annotations = textbook()
    alpha = {"nominal": 0.7434, "ordinal": 0.8154, "interval": 0.8491, "ratio": 0.7974}
    for scale, value in alpha.items():
        assert krippendorff_alpha(annotations, scale=scale) == pytest.approx(value, abs=5e-5)
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
def test_without_possible_difference_agreement_is_full(name):
    annotations = relation([[2, 2], [2, 2, 2]]).recode("2")
    assert agree(annotations, name, resamples=0)[name].value == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval", "ratio"])
def test_alpha_is_that_of_the_package_krippendorff(seed, scale):
    krippendorff = pytest.importorskip("krippendorff")
    table = crowd(seed)
    expected = krippendorff.alpha(table.T, level_of_measurement=scale)
    annotations = Annotations.from_matrix(table)
    assert krippendorff_alpha(annotations, scale=scale) == pytest.approx(expected, abs=1e-9)
    item, annotator = np.nonzero(~np.isnan(table))
    numbers = Numbers.from_columns(item, annotator, table[item, annotator])
    assert krippendorff_alpha(numbers, scale=scale) == pytest.approx(expected, abs=1e-9)


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
    scale = {"identity": "nominal", "quadratic": "interval"}.get(weights, weights)
    if weights in ("linear", "ordinal"):  # its alpha has other weights than Krippendorff's
        scale = "nominal"
        del peers["alpha"]
    found = agree(annotations, list(peers), scale=scale, weights=weights, resamples=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it calls pandas in an old way
        classes = [1.0, 2.0, 3.0, 4.0]  # explicit, because with pandas 3 it takes NaN for one
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
            assert found.overlap[(found.one == one) & (found.other == other)].sum() == both.sum()


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
