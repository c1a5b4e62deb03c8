"""Annotators and items whose answers are sets, rankings, marks, masks or texts.

Every annotator is compared with the consensus and with the others. A verdict needs a least number
of answers, and the whole interval of what speaks for it:

    careless             comparisons: honest with probability below one half
    misses marks         finds less than half of what annotators find on average; of sets, options
    spurious marks       more than twice as many spurious marks per item as on average
    one side             comparisons: prefers a side three times out of four
    far from the others  the distance to others exceeds that of their items by half the mean

Items are listed by the mean distance of their answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, gammaincinv, ndtri

from ..aggregation import aggregate
from ..aggregation.aggregation import AnswerAggregation
from ..answers import KINDS, Answers
from ..answers.rankings import Pairs
from ..base.arrays import Array, Floats, Integers
from ..base.names import Names, as_names
from ..base.probability import proportion
from ..base.storage import as_plain, as_rows
from ..metrics.distances import Distances
from ..pages.sections import Section
from ..pages.sections import Table as SmallTable
from ..pages.wording import formatted
from ..result import Result, Table
from .annotators import check_level, identify
from .sections import SENTENCES, more_rows, verdicts_sentence

FEW = "too few answers"
LIKE_OTHERS = "like the others"
_LEAST = 5  # answers of an annotator
_LEAST_COUNTS = 10  # marks, options or comparisons
_HONEST = (8.0, 2.0)  # the Beta prior of honesty
_SHOWN = (  # what is shown of annotators, where the kind has it
    *("found", "spurious", "sensitivity", "specificity", "honest", "side", "ties", "iou"),
    *("accuracy", "quality"),
)
_HALF, _TWICE = 0.5, 2.0  # of the mean
_SIDE = 0.75  # share of one side


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AnswerScores(Result):
    """Scores of annotators and items, and verdicts.

    Attributes
    ----------
    result
        The consensus that annotators are compared with.
    annotators
        The table of annotators of the kind, with distances, intervals and a verdict.
    items
        Items by the mean distance of their answers, the largest first.
    evidence
        A sentence about every annotator with a verdict, by name.
    """

    result: AnswerAggregation
    annotators: dict[str, Array]
    items: dict[str, Array]
    evidence: dict[str, str]
    confidence: float

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {word}" for word, count in self.verdict_counts.items())
        return f"<AnswerScores by {self.result.method}: {counts}>"

    @property
    def verdict(self) -> Names:
        """The verdict about every annotator."""
        return self.annotators["verdict"]

    @property
    def verdict_counts(self) -> dict[str, int]:
        """The number of annotators with every verdict."""
        return dict(sorted(Counter(self.verdict.tolist()).items()))

    @property
    def worst(self) -> Integers:
        """The annotators by code, those with a verdict first."""
        rank = {LIKE_OTHERS: 1, FEW: 2}
        ranks = np.array([rank.get(word, 0) for word in self.verdict.tolist()])
        return np.lexsort((-np.nan_to_num(self.annotators["excess"]), ranks))

    @property
    def tables(self) -> Mapping[str, Table]:
        """Annotators and items."""
        return {"annotators": self.annotators, "items": self.items}

    def sections(self, top: int = 20, *, items: bool = False) -> tuple[Section, ...]:
        """Return the first annotators with their verdicts, or the first items."""
        return self._items(top) if items else self._annotators(top)

    def _annotators(self, top: int) -> tuple[Section, ...]:
        table, order = self.annotators, self.worst
        names = [name for name in _SHOWN if name in table]
        rows = [
            (
                *(str(table[name][code]) for name in ("annotator", "verdict", "n_answers")),
                *(_with_bounds(table, name, code) for name in names),
                formatted(float(table["distance"][code]), ".3f"),
            )
            for code in order[:top].tolist()
        ]
        heads = ("annotator", "verdict", "answers", *names, "distance")
        caption = f"{len(order)} annotators compared with {self.result.method}"
        text = [*more_rows(len(order), top), verdicts_sentence(self.verdict_counts)]
        text += [f"{name}: {words}." for name, words in [*self.evidence.items()][:SENTENCES]]
        panels = [[SmallTable(caption, heads, rows, n_texts=2)]]
        return (
            Section("annotators", "Annotators", panels=panels),
            Section("verdicts", "Verdicts", text=text),
        )

    def _items(self, top: int) -> tuple[Section, ...]:
        items, n_answers, empty, distance = (
            column[:top].tolist() for column in self.items.values()
        )
        cells = [formatted(value, ".3f") for value in distance]
        rows = list(zip(items, map(str, n_answers), map(str, empty), cells, strict=True))
        n_items = len(self.items["item"])
        caption = f"{n_items} items, those with the largest distance first"
        table = SmallTable(caption, ("item", "answers", "empty", "distance"), rows)
        return (
            Section("items", "Items", panels=[[table]]),
            Section("more", "More", text=more_rows(n_items, top)),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        content = {"kind": self.result.kind, "method": self.result.method}
        tables = {"annotators": as_rows(self.annotators), "items": as_rows(self.items)}
        return as_plain(content | {"confidence": self.confidence} | tables) | {
            "evidence": self.evidence
        }


def _with_bounds(table: Table, name: str, code: int) -> str:
    value = formatted(float(table[name][code]), ".2f")
    if f"{name}_low" not in table:
        return value
    low, high = (float(table[f"{name}_{end}"][code]) for end in ("low", "high"))
    return f"{value} [{low:.2f}, {high:.2f}]" if low == low and value != "–" else value


@identify.for_kind(*KINDS)
def identify_on_answers(
    answers: Answers,
    result: AnswerAggregation | None,
    *,
    method: str,
    gold: Any,
    confidence: float,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> AnswerScores:
    """Score annotators and items by the consensus and the distances of answers."""
    check_level(confidence)
    result = aggregate(answers, method, gold=gold, seed=seed) if result is None else result
    if progress is not None:
        progress(1, 2)
    table: dict[str, Array] = dict(result.annotators)
    within = Distances.of(answers)
    table |= _distances(answers, within, confidence)
    table |= _intervals(answers, result, table, confidence)
    verdict, evidence = _verdicts(answers, table)
    table["verdict"] = as_names(verdict)
    item_distance = within.by_item(answers)
    order = np.lexsort((np.arange(answers.n_items), -np.nan_to_num(item_distance, nan=-1.0)))
    items: dict[str, Array] = {
        "item": answers.items[order],
        "n_answers": answers.labels_per_item[order],
        "n_empty": np.bincount(answers.item[answers.empty], minlength=answers.n_items)[order],
        "distance": item_distance[order],
    }
    return AnswerScores(
        result=result, annotators=table, items=items, evidence=evidence, confidence=confidence
    )


def _distances(answers: Answers, within: Distances, confidence: float) -> dict[str, Array]:
    """Return the mean distance to others, and by how much it exceeds that of their items."""
    own = within.by_answer(len(answers))
    excess = own - within.by_item(answers)[answers.item]
    compared = ~np.isnan(own)
    annotator = answers.annotator[compared]
    count = np.bincount(annotator, minlength=answers.n_annotators).astype(float)

    def mean(value: Floats) -> Floats:
        total = np.bincount(annotator, value[compared], minlength=answers.n_annotators)
        return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)

    value = mean(excess)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(np.maximum(mean(excess**2) - value**2, 0.0) / (count - 1))
    spread = np.where(count > 1, spread, np.nan)
    z = float(ndtri((1 + confidence) / 2))
    low, high = value - z * spread, value + z * spread
    return {"distance": mean(own), "excess": value, "excess_low": low, "excess_high": high}


def _intervals(
    answers: Any, result: AnswerAggregation, table: dict[str, Array], confidence: float
) -> dict[str, Array]:
    """Return intervals of what the method learned about annotators."""
    intervals: dict[str, Array] = {}
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    load = answers.labels_per_annotator.astype(float)
    share = next((name for name in ("found", "sensitivity") if name in table), None)
    if share is not None:
        n_true = _true_elements(answers, result)
        recall = proportion(np.nan_to_num(table[share]) * n_true, n_true, confidence)
        intervals |= {f"{share}_low": recall.low, f"{share}_high": recall.high, "n_true": n_true}
    if "spurious" in table:
        count = np.nan_to_num(table["spurious"]) * load
        with np.errstate(invalid="ignore", divide="ignore"):
            low = np.where(count > 0, gammaincinv(np.maximum(count, 1e-9), tails[0]), 0.0) / load
            intervals |= {
                "spurious_low": low,
                "spurious_high": gammaincinv(count + 1, tails[1]) / load,
            }
    if "honest" in table:
        pairs: Pairs = answers.pairs()
        annotator = answers.annotator[pairs.answer]
        n = np.bincount(annotator, minlength=answers.n_annotators).astype(float)
        yes = np.clip(np.nan_to_num(table["honest"]) * (n + 8) - 7, 0, n)
        a, b = yes + _HONEST[0], n - yes + _HONEST[1]
        intervals |= {
            f"honest_{e}": betaincinv(a, b, t) for e, t in zip(("low", "high"), tails, strict=True)
        }
        n_left = np.bincount(annotator[pairs.outcome == 0], minlength=answers.n_annotators).astype(
            float
        )
        decided = np.bincount(annotator[pairs.outcome < 2], minlength=answers.n_annotators).astype(
            float
        )
        side = proportion(n_left, decided, confidence)
        has_sides = (pairs.outcome == 1).any()  # otherwise things are listed by rank
        unknown = np.full(len(n_left), np.nan)
        intervals |= {"side": side.value if has_sides else unknown, "n_decided": decided}
        intervals |= {"side_low": side.low if has_sides else unknown}
        intervals |= {"side_high": side.high if has_sides else unknown}
    return intervals


def _true_elements(answers: Answers, result: AnswerAggregation) -> Floats:
    """Return how many marks or options the consensus has on the items of every annotator."""
    agreed = answers.align(result.truth)
    sizes = getattr(agreed, "sizes", np.zeros(len(agreed)))
    by_item = np.bincount(agreed.item, sizes, minlength=answers.n_items)
    return np.bincount(answers.annotator, by_item[answers.item], answers.n_annotators).astype(float)


def _verdicts(answers: Answers, table: dict[str, Array]) -> tuple[list[str], dict[str, str]]:
    verdicts, evidence = [], {}
    load = answers.labels_per_annotator
    mean = float(np.nansum(table["distance"] * load) / max(load.sum(), 1))
    rules = _rules(answers, table, mean)
    for code, name in enumerate(answers.annotators.tolist()):
        if load[code] < _LEAST:
            verdicts.append(FEW)
            continue
        verdict = next(((word, text(code)) for word, test, text in rules if test[code]), None)
        verdicts.append(verdict[0] if verdict else LIKE_OTHERS)
        if verdict:
            evidence[name] = verdict[1]
    return verdicts, evidence


def _rules(answers: Answers, table: dict[str, Array], mean: float) -> list[tuple[str, Any, Any]]:
    """Return verdicts in order, whom they are about, and the sentence about them."""
    rules: list[tuple[str, Any, Any]] = []
    load = answers.labels_per_annotator

    def between(name: str, code: int, digits: int = 2) -> str:
        value, low, high = (table[n][code] for n in (name, f"{name}_low", f"{name}_high"))
        return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"

    if "honest_high" in table:
        few = table["n_decided"] < _LEAST_COUNTS
        rules.append(
            (
                "careless",
                (table["honest_high"] < _HALF) & ~few,
                lambda code: f"honest with probability {between('honest', code)}",
            )
        )
    share = next((name for name in ("found", "sensitivity") if f"{name}_high" in table), None)
    if share is not None:
        n_true = table["n_true"]
        usual = float(np.nansum(table[share] * n_true) / max(n_true.sum(), 1))
        word = {"found": "marks"}.get(share, "options")
        rules.append(
            (
                f"misses {word}",
                (table[f"{share}_high"] < _HALF * usual) & (n_true >= _LEAST_COUNTS),
                lambda code: (
                    f"found {between(share, code)} of {table['n_true'][code]:.0f} {word}, "
                    f"annotators find {usual:.2f}"
                ),
            )
        )
    if "spurious_low" in table:
        rate = float(np.nansum(table["spurious"] * load) / max(load.sum(), 1))
        rules.append(
            (
                "spurious marks",
                table["spurious_low"] > _TWICE * rate,
                lambda code: (
                    f"{between('spurious', code)} spurious marks an item, usual {rate:.2f}"
                ),
            )
        )
    if "side_low" in table:
        sided = (table["side_low"] > _SIDE) | (table["side_high"] < 1 - _SIDE)
        rules.append(
            (
                "one side",
                sided & (table["n_decided"] >= _LEAST_COUNTS),
                lambda code: f"left in {between('side', code)} of comparisons that are decided",
            )
        )
    rules.append(
        (
            "far from the others",
            table["excess_low"] > _HALF * mean,
            lambda code: (
                f"distance {table['distance'][code]:.2f}, which exceeds that of the same items by "
                f"{between('excess', code)}"
            ),
        )
    )
    return rules
