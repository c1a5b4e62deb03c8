"""What a report states about annotations, computed again from rows of a table.

Plain pandas, SciPy, scikit-learn and krippendorff; nothing here calls Dissensus. Tables have the
columns item, annotator and label, all texts; numbers have a column value, too.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any, NamedTuple

import krippendorff
import numpy as np
import pandas as pd
from scipy import stats
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import cohen_kappa_score

Array = np.ndarray[Any, Any]
WORDS = ("slight", "fair", "moderate", "substantial", "almost perfect")
_PERMUTATIONS = 400
_RESAMPLES = 200


class Follows(NamedTuple):
    """The correlation of an annotator's labels with a reference, and how sure it is."""

    correlation: float
    low: float
    high: float
    z: float  # in standard deviations of permuted labels
    n: int


def vote_table(rows: pd.DataFrame, column: str = "label") -> pd.DataFrame:
    """Return how often every label was given: items by labels."""
    return pd.crosstab(rows["item"], rows[column])


def alpha(rows: pd.DataFrame, level: str, seed: int = 0) -> tuple[float, float, float]:
    """Return Krippendorff's alpha, and the bounds of its interval over resampled items."""
    votes = vote_table(rows, "label" if level == "nominal" else "value")
    domain = list(range(votes.shape[1])) if level == "nominal" else votes.columns.tolist()
    counts, rng = votes.to_numpy(), np.random.default_rng(seed)

    def of(sample: Array) -> float:
        return float(
            krippendorff.alpha(value_counts=sample, value_domain=domain, level_of_measurement=level)
        )

    drawn = [of(counts[rng.integers(len(counts), size=len(counts))]) for _ in range(_RESAMPLES)]
    return of(counts), *np.quantile(drawn, [0.025, 0.975]).tolist()


def word(value: float) -> str:
    """Return the word of Landis and Koch."""
    return "poor" if value < 0 else WORDS[min(int(value / 0.2), 4)]


def pairs_agree(rows: pd.DataFrame) -> float:
    """Return the share of pairs of labels on one item that are equal, items counted alike."""
    votes = vote_table(rows).to_numpy()
    size = votes.sum(axis=1)
    equal = (votes * (votes - 1)).sum(axis=1)[size > 1] / (size * (size - 1))[size > 1]
    return float(equal.mean())


def closer(rows: pd.DataFrame) -> float:
    """Return how much closer unequal labels of an item are than unequal labels of all items."""
    votes = vote_table(rows).to_numpy().astype(float)
    votes = votes[votes.sum(axis=1) > 1]
    pairs = (votes / (votes.sum(axis=1, keepdims=True) - 1)).T @ votes
    total = votes.sum(axis=0)
    steps = np.abs(np.subtract.outer(np.arange(len(total)), np.arange(len(total))))
    observed, expected = (np.where(steps > 0, one, 0.0) for one in (pairs, np.outer(total, total)))
    within, overall = ((steps * one).sum() / one.sum() for one in (observed, expected))
    return float(1 - within / overall)


def split_votes(rows: pd.DataFrame) -> int:
    """Return on how many items two labels or more have the most votes."""
    votes = rows.groupby("item")["label"].agg(lambda labels: Counter(labels).most_common())
    return sum(len(one) > 1 and one[0][1] == one[1][1] for one in votes)


def nobody_gave(rows: pd.DataFrame, labels: dict[str, str]) -> int:
    """Return how many items have a label that nobody gave."""
    given = rows.groupby("item")["label"].agg(set)
    return sum(labels[item] not in some for item, some in given.items())


def components(rows: pd.DataFrame) -> int:
    """Return into how many groups that share no item the annotators fall."""
    items, annotators = pd.factorize(rows["item"])[0], pd.factorize(rows["annotator"])[0]
    n = annotators.max() + 1
    edges = np.ones(len(rows)), (annotators, items + n)
    size = n + items.max() + 1
    return int(connected_components(coo_array(edges, shape=(size, size)), directed=False)[0])


def follows(
    rows: pd.DataFrame, known: dict[str, str] | None, ordered: bool, name: str, seed: int = 0
) -> Follows:
    """Return how far one annotator's labels follow the known labels, elsewhere the others'."""
    own, reference = _compared(rows, known or {}, ordered, name)
    n = len(own)
    if n < 4 or np.ptp(own, axis=0).max() == 0 or np.ptp(reference, axis=0).max() == 0:
        return Follows(math.nan, math.nan, math.nan, math.nan, n)
    rng = np.random.default_rng(seed)
    if ordered:
        x, y = own[:, 0], reference[:, 0]
        value = float(stats.pearsonr(x, y)[0] + stats.spearmanr(x, y)[0]) / 2
        z, size = value * math.sqrt(n - 1), float(n)
    else:
        x, y = own - own.mean(axis=0), reference - reference.mean(axis=0)
        norm = math.sqrt((x**2).sum() * (y**2).sum())
        value = float((x * y).sum()) / norm
        drawn = [float((x[rng.permutation(n)] * y).sum()) / norm for _ in range(_PERMUTATIONS)]
        spread = float(np.std(drawn))
        if spread < 1e-9:  # labels and items vary in different classes
            return Follows(math.nan, math.nan, math.nan, math.nan, n)
        z, size = value / spread, 1 + 1 / spread**2
    center, reach = np.arctanh(np.clip(value, -0.999999, 0.999999)), 1.96 / math.sqrt(size - 3)
    return Follows(value, float(np.tanh(center - reach)), float(np.tanh(center + reach)), z, n)


def _compared(
    rows: pd.DataFrame, known: dict[str, str], ordered: bool, name: str
) -> tuple[Array, Array]:
    """Return an annotator's labels and the reference on the same items: (item, class or 1)."""
    mine = rows[rows["annotator"] == name]
    others = rows[(rows["annotator"] != name) & rows["item"].isin(mine["item"])]
    if ordered:
        mean = others.groupby("item")["value"].mean()
        reference = {item: [value] for item, value in mean.items()}
        reference |= {item: [float(label)] for item, label in known.items()}
        own = {item: [value] for item, value in mine.groupby("item")["value"].mean().items()}
    else:
        classes = sorted(set(rows["label"]) | set(known.values()))
        share = pd.crosstab(others["item"], others["label"], normalize="index")
        share = share.reindex(columns=classes, fill_value=0)
        reference = dict(zip(share.index, share.to_numpy().tolist(), strict=True))
        reference |= {item: [float(label == k) for k in classes] for item, label in known.items()}
        pairs = zip(mine["item"], mine["label"], strict=True)
        own = {item: [float(label == k) for k in classes] for item, label in pairs}
    items = [item for item in own if item in reference]
    return np.array([own[item] for item in items]), np.array([reference[item] for item in items])


def bias(rows: pd.DataFrame, name: str) -> tuple[float, float, float]:
    """Return by how much somebody's numbers exceed the mean of the others, with a t interval."""
    difference = differences(rows, name)
    mean, error = difference.mean(), difference.std(ddof=1) / math.sqrt(len(difference))
    reach = stats.t.ppf(0.975, len(difference) - 1) * error
    return float(mean), float(mean - reach), float(mean + reach)


def differences(rows: pd.DataFrame, name: str) -> Array:
    """Return somebody's numbers minus the mean of the others on the same items."""
    own, reference = _compared(rows, {}, True, name)
    return (own - reference)[:, 0]


def error_of_wide(rows: pd.DataFrame, draws: int = 20, seed: int = 0) -> float:
    """Return the mean standard error of items that scatter more than twice as much as usual.

    Wide items are wide in part by chance: how far variances of some answers predict those of
    others, on items of five answers, shows how far they would be in further answers.
    """
    answers = [one.to_numpy()[:5] for _, one in rows.groupby("item")["value"] if len(one) >= 5]
    values, rng = np.array(answers), np.random.default_rng(seed)
    drawn = np.concatenate([rng.permuted(values, axis=1) for _ in range(draws)])
    first, second = drawn[:, :3].var(axis=1, ddof=1), (drawn[:, 3] - drawn[:, 4]) ** 2 / 2
    variance = values.var(axis=1, ddof=1)
    slope = float(np.cov(first, second)[0, 1]) / float(variance.var())
    wide = variance > 4 * np.median(variance) * (1 + 1e-9)
    expected = variance.mean() + slope * (variance[wide] - variance.mean())
    return float(np.sqrt(expected / 5).mean())


def pair_agreement(rows: pd.DataFrame, group: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return correlation and Cohen's kappa of pairs within and between groups.

    Pairs are weighted by their common items.
    """
    labels = {name: one.set_index("item")["label"] for name, one in rows.groupby("annotator")}
    sums = np.zeros((2, 3))  # (between or within; correlation, kappa, weight)
    for pair in combinations(sorted(group), 2):
        one, other = (labels[name] for name in pair)
        common = one.index.intersection(other.index)
        if len(common) < 5:
            continue
        x, y = (pd.get_dummies(each.loc[common]).astype(float) for each in (one, other))
        x, y = x.align(y, join="outer", axis=1, fill_value=0.0)
        x, y = x - x.mean(), y - y.mean()
        norm = math.sqrt(float((x**2).sum().sum()) * float((y**2).sum().sum()))
        if norm == 0:
            continue
        kappa = cohen_kappa_score(one.loc[common], other.loc[common])
        found = np.array([float((x * y).sum().sum()) / norm, kappa, 1.0])
        sums[int(group[pair[0]] == group[pair[1]])] += len(common) * found
    means = sums[:, :2] / sums[:, 2:]
    between, within = means.tolist()
    return {"correlation": (within[0], between[0]), "kappa": (within[1], between[1])}


def label_shares(rows: pd.DataFrame, members: list[str], others: list[str]) -> pd.DataFrame:
    """Return the mean share of every label in two groups, on items that both labelled."""
    shares = []
    for names in (members, others):
        part = rows[rows["annotator"].isin(names)]
        shares.append(pd.crosstab(part["item"], part["label"], normalize="index"))
    common = shares[0].index.intersection(shares[1].index)
    return pd.DataFrame([one.loc[common].mean() for one in shares]).fillna(0.0)


def group_difference(
    rows: pd.DataFrame, inside: set[str], outside: set[str], label: str
) -> tuple[float, float]:
    """Return how much more often a group gives a label on the same items, and its error.

    A regression on membership and items; its error is over annotators.
    """
    kept = rows[rows["annotator"].isin(inside | outside)]
    y = (kept["label"] == label).astype(float)
    x = kept["annotator"].isin(inside).astype(float)
    y, x = (one - one.groupby(kept["item"]).transform("mean") for one in (y, x))
    square = float((x**2).sum())
    value = float((x * y).sum()) / square
    scores = (x * (y - value * x)).groupby(kept["annotator"]).sum()
    n = int(((x**2).groupby(kept["annotator"]).sum() > 0).sum())
    return value, math.sqrt(float((scores**2).sum()) * n / (n - 1)) / square


def fisher(flagged: set[str], inside: set[str], outside: set[str]) -> tuple[int, int, float]:
    """Return how many of a group and of the others are flagged, and Fisher's p-value."""
    here, there = len(flagged & inside), len(flagged & outside)
    table = [[here, len(inside) - here], [there, len(outside) - there]]
    return here, there, float(stats.fisher_exact(table)[1])


def planted_camps(rows: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return the rows after half of the annotators got another truth on a share of the items.

    Their labels of these items are those of other items: their own, or else anybody's.
    """
    names, items = (np.array(sorted(rows[column].unique())) for column in ("annotator", "item"))
    camp = set(rng.permutation(names)[: len(names) // 2].tolist())
    divided = rng.permutation(items)[: round(share * len(items))]
    source = dict(zip(divided.tolist(), rng.permutation(divided).tolist(), strict=True))
    given = rows.groupby("item")["label"].agg(list).to_dict()
    triples = list(rows[["item", "annotator", "label"]].itertuples(index=False))
    own = {(item, annotator): label for item, annotator, label in triples}

    def drawn(item: str, annotator: str, label: str) -> str:
        if annotator not in camp or item not in source:
            return label
        return own.get((source[item], annotator)) or str(rng.choice(given[source[item]]))

    return rows.assign(label=[drawn(*one) for one in triples])
