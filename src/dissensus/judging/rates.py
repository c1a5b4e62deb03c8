"""What the true rate is: shares of classes or means, in groups of items and between two groups.

The true difference of two groups, systems on the same prompts or on different ones: where both have
items in the same clusters, the method of `true_mean` is applied to the differences within clusters,
of people's values and of the judge's. Otherwise the two estimates are independent, and their
variances add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtrit

from ..base.arrays import Floats, Integers
from ..base.tables import Table
from ..pages import charts
from ..pages.charts import BLUE, GREY, ORANGE, Figure
from ..pages.sections import Column, SortableTable
from ..pages.wording import amount, formatted, interval, many, percent
from .clusters import correlation, means_by, n_clusters
from .mixed import Mask, Mixed
from .question import (
    ENOUGH,
    Question,
    hundredths,
    names_axis,
    shortened,
    table_of,
    too_few,
    whole_percent,
)
from .true_mean import Mean, powered_mean, true_mean
from .true_shares import MIN_LABELS, Rate, Sampled, Share, true_shares

_MOST_DIFFERENT = 6  # groups whose differences are estimated
_MOST = 4  # classes in sentences; tables have all
_MOST_GROUPS = 8  # in sentences
_MOST_DRAWN = 12  # rates in the chart
_LEAST_CORRELATION = 0.3  # below it a judge saves nothing
_SAMPLED = {
    "random": "a random sample",
    "by-judge": "chosen by what the models answered",
    "by-label": "chosen by their true class",
}
_NOT_CORRECTED = {  # problem → why a rate stays as it is
    "judge": ", but does not separate the classes well enough to correct it.",
    "sampled": "; no correction is known for items that were not chosen at random.",
}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The mean of one group minus that of another.

    `n_labels` are pairs with human labels on both sides (or the fewer labels of the two groups),
    `paired` whether differences within clusters were used, `label` the class whose share it is.
    """

    one: str
    other: str
    label: str
    judge_difference: float
    estimate: float
    low: float
    high: float
    n_labels: int
    paired: bool


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rates(Question):
    """True shares of classes, or true means, and differences of groups.

    Attributes
    ----------
    data
        The labels of people and of models.
    sampled
        How the items that people labelled were chosen.
    shares, means
        Shares of classes; means of numbers and of classes in order.
    differences
        Of every two groups.
    """

    name: ClassVar[str] = "rates"
    title: ClassVar[str] = "What is the true rate?"

    data: Mixed
    sampled: Sampled
    shares: tuple[Share, ...]
    means: tuple[Mean, ...]
    differences: tuple[Difference, ...]

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The shares, or the means."""
        return self.shares or self.means

    @property
    def tables(self) -> Mapping[str, Table]:
        """Shares, means and differences."""
        return {
            "shares": table_of(self.shares, judged="judge_share"),
            "means": table_of(self.means, judged="judge_mean", label=""),
            "differences": table_of(self.differences),
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        """The most frequent classes, or one class of every group, what models save; differences."""
        rates = self._most_frequent()
        if rates and not self.data.known.any():
            return (f"{self.title} {too_few(0, ENOUGH)}",)
        sentences = [self._corrected(rate) for rate in rates]
        if any(not rate.problem for rate in rates):
            sampled = _SAMPLED[self.sampled]
            sentences.append(f"This takes the items that people labelled for {sampled}.")
            sentences += self._saved(rates[0])
        sentences += map(_differ, self.differences[:_MOST_GROUPS])
        return tuple(filter(None, sentences))

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Rates as judged, from people alone, and corrected."""
        rows: list[dict[str, Any]] = []
        for rate in self.rates[:_MOST_DRAWN]:
            label = " · ".join(filter(None, [rate.group, rate.label])) or "mean"
            sources = {
                "models": (rate.judged, rate.judged, rate.judged),
                "people": (rate.people, rate.people_low, rate.people_high),
                "corrected": (rate.estimate, rate.low, rate.high),
            }
            rows += [
                {
                    "what": shortened(label, 32),
                    "by": source,
                    "value": value,
                    "low": low,
                    "high": high,
                }
                for source, (value, low, high) in sources.items()
                if not math.isnan(value)
            ]
        return {"shares": _figure(rows, bool(self.shares))} if rows else {}

    @property
    def sortable_table(self) -> SortableTable | None:
        """All rates with their intervals."""
        rates = self.rates
        if not rates:
            return None
        form: Any = percent if self.shares else ".3g"
        columns = {"group": Column([rate.group for rate in rates])} if len(self.data.groups) else {}
        if self.shares:
            columns["class"] = Column([share.label for share in self.shares])
        columns |= {
            "models": Column([rate.judged for rate in rates], form),
            "corrected": Column([rate.estimate for rate in rates], form),
            "95% interval": Column(
                [_between(rate, rate.low, rate.high) or "–" for rate in rates], kind="plain number"
            ),
            "people alone": Column(
                [_between(rate, rate.people_low, rate.people_high) or "–" for rate in rates],
                kind="plain number",
            ),
            "human labels": Column([rate.n_labels for rate in rates], "d"),
        }
        return SortableTable("rate-table", amount(len(rates), "estimate"), columns)

    def _most_frequent(self) -> Sequence[Rate]:
        """Return what sentences are about."""
        if self.means:
            return self.means[:_MOST_GROUPS]
        shares = [share for share in self.shares if share.judged > 0.005 or share.estimate > 0.005]
        if not len(self.data.groups):
            shares.sort(key=lambda share: -(share.judged if share.problem else share.estimate))
            return shares[: 2 if self.data.n_classes == 2 else _MOST]
        spread = {
            label: float(np.ptp([share.judged for share in self.shares if share.label == label]))
            for label in self.data.classes.tolist()
        }
        widest = max(spread, key=lambda label: spread[label])
        return [share for share in shares if share.label == widest][:_MOST_GROUPS]

    def _corrected(self, rate: Rate) -> str:
        """Return what the models say, and what is true."""
        names, value = self.data.judge_names, _written(rate, rate.judged)
        source = names[0] if len(names) == 1 else f"The panel of {len(names)} models"
        says = f"says {value} {shortened(rate.label)}" if rate.label else f"has a mean of {value}"
        judged = f"{rate.group}: {source} {says}" if rate.group else f"{source} {says}"
        if rate.problem == "few":
            return f"{judged}. {too_few(rate.n_labels, ENOUGH)}"
        if rate.problem:
            return f"{judged}{_NOT_CORRECTED[rate.problem]}"
        people = _between(rate, rate.people_low, rate.people_high)
        return (
            f"{judged}. Corrected by {many(rate.n_labels, 'human label')}: "
            f"{_written(rate, rate.estimate)} ({_between(rate, rate.low, rate.high)})."
            + (f" Human labels alone: {people}." if people else "")
        )

    def _saved(self, rate: Rate) -> Iterator[str]:
        """Return what the models save, in labels."""
        if self.sampled != "random" or rate.problem or rate.n_items == rate.n_labels:
            return
        r = rate.correlation if isinstance(rate, Mean) else self._correlation(rate.label)
        if r < _LEAST_CORRELATION:
            yield f"The models save no human labels here: their correlation with people is {r:.2f}."
        else:
            worth = round(100 / max(1 - r**2, 0.01))
            count = f"count like {worth} without (correlation {r:.2f})"
            yield f"100 human labels with the models {count}."

    def _correlation(self, label: str) -> float:
        ((_, y, f),) = self.data.compared(None, [label])
        usable = ~np.isnan(y) & ~np.isnan(f)
        return correlation(y[usable], f[usable], 0.0)


def rates(
    data: Mixed,
    *,
    sampled: Sampled = "random",
    judge: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Rates:
    """Return shares of nominal classes, or means of values, and differences of few groups.

    The judge is one, or the panel.
    """
    settings: Any = {"sampled": sampled, "judge": judge, "confidence": confidence, "seed": seed}
    groups = data.groups.tolist()
    compared = groups if sampled == "random" and len(groups) <= _MOST_DIFFERENT else []
    return Rates(
        data=data,
        sampled=sampled,
        shares=() if data.ordered else true_shares(data, **settings),
        means=true_mean(data, **settings) if data.ordered else (),
        differences=tuple(
            true_difference(data, *pair, label=label, judge=judge, confidence=confidence)
            for label in data.rate_labels
            for pair in combinations(compared, 2)
        ),
    )


def true_difference(
    data: Mixed,
    one: str,
    other: str,
    *,
    label: str | None = None,
    judge: int | None = None,
    confidence: float = 0.95,
) -> Difference:
    """Return the difference of two groups: of means, or of the shares of a class."""
    ((_, y, f),) = data.compared(judge, [label])
    names = data.groups.tolist()
    sides = [data.group == names.index(name) for name in (one, other)]
    pairs = _paired(y, f, data.cluster, sides) if data.clustered else None
    if pairs is not None and (~np.isnan(pairs[0])).sum() >= MIN_LABELS:
        dy, df = pairs
        labelled = ~np.isnan(dy)
        n_labels, judged = int(labelled.sum()), float(df.mean())
        middle, low, high, _ = powered_mean(
            dy[labelled], df[labelled], df[~labelled], confidence=confidence
        )
    else:
        pairs = None
        judged = float(np.nanmean(f[sides[0]]) - np.nanmean(f[sides[1]]))
        middle, low, high, n_labels = _unpaired(y, f, sides, confidence)
    return Difference(
        one=one,
        other=other,
        label=label or "",
        judge_difference=judged,
        estimate=middle,
        low=low,
        high=high,
        n_labels=n_labels,
        paired=pairs is not None,
    )


def _paired(
    y: Floats, f: Floats, cluster: Integers, sides: list[Mask]
) -> tuple[Floats, Floats] | None:
    """Return differences of people's and the judge's values in clusters that both groups have."""
    means = []
    for values in (y, f):
        for side in sides:
            present = side & ~np.isnan(values)
            means.append(means_by(cluster[present], values[present], n_clusters(cluster)))
    shared = ~np.isnan(means[2]) & ~np.isnan(means[3])
    if shared.sum() < MIN_LABELS:
        return None
    return (means[0] - means[1])[shared], (means[2] - means[3])[shared]


def _unpaired(
    y: Floats, f: Floats, sides: list[Mask], confidence: float
) -> tuple[float, float, float, int]:
    """Return the difference of two independent means, its interval, and the fewer labels."""
    estimates, variances, counts = [], [], []
    level = (1 + confidence) / 2
    for side in sides:
        labelled = side & ~np.isnan(y) & ~np.isnan(f)
        unlabelled = side & np.isnan(y) & ~np.isnan(f)
        counts.append(int(labelled.sum()))
        if counts[-1] < MIN_LABELS:
            continue
        estimate, low, _, _ = powered_mean(
            y[labelled], f[labelled], f[unlabelled], confidence=confidence
        )
        estimates.append(estimate)
        variances.append(((estimate - low) / stdtrit(max(counts[-1] - 2, 1), level)) ** 2)
    middle = reach = math.nan
    if len(estimates) == 2:
        factor = float(stdtrit(max(min(counts) - 2, 1), level))
        reach = factor * float(np.sqrt(sum(variances)))
        middle = estimates[0] - estimates[1]
    return middle, middle - reach, middle + reach, min(counts)


def _differ(pair: Difference) -> str:
    """Return whether two groups differ; nothing where that is unknown."""
    if math.isnan(pair.estimate):
        return ""
    of = f" in the share of {shortened(pair.label)}" if pair.label else ""
    clear = "differ" if pair.low > 0 or pair.high < 0 else "do not clearly differ"
    middle, low, high = (
        f"{100 * value:+.0f} points" if pair.label else f"{value:+.2g}"
        for value in (pair.estimate, pair.low, pair.high)
    )
    return f"{pair.one} and {pair.other} {clear}{of}: {middle} ({low} to {high})."


def _written(rate: Rate, value: float) -> str:
    return whole_percent(value) if rate.label else f"{value:.3g}"


def _between(rate: Rate, low: float, high: float) -> str:
    return hundredths(low, high) if rate.label else interval(low, high, ".3g")


def _figure(rows: list[dict[str, Any]], of_shares: bool) -> Figure:
    names = list(dict.fromkeys(row["what"] for row in rows))
    x = charts.number("value", "share" if of_shares else "mean", scale={"zero": False})
    if of_shares:
        x["axis"] = charts.PERCENT
    y = {"field": "what", **names_axis(names, 200)}
    palette = {"models": GREY, "people": ORANGE, "corrected": BLUE}
    form = ".1%" if of_shares else ".3f"
    tooltip = charts.tooltip(what="", by="", value=form, low=form, high=form)
    layers = charts.dots(x, y, tooltip, along="x")
    for layer in layers:
        layer["encoding"] |= {
            "color": charts.colour("by", palette),
            "yOffset": {"field": "by", "type": "nominal", "sort": [*palette]},
        }
    form_of_cell: Any = percent if of_shares else ".3g"
    numbers = [
        (
            row["what"],
            row["by"],
            *(formatted(row[bound], form_of_cell) for bound in ("value", "low", "high")),
        )
        for row in rows
    ]
    return Figure(
        "Shares" if of_shares else "Means",
        "As the models have it, from human labels alone, and corrected by them; 95% intervals.",
        charts.chart(rows, height=max(44 * len(names), 90), layer=layers),
        (("", "by", "value", "low", "high"), *numbers),
    )
