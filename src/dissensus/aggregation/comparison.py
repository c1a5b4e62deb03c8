"""A comparison of methods, with and without truth.

Without truth, methods are compared by the likelihood of held-out annotations (`held_out`). That is
the best such score known, and a weak one: it rewards explaining annotators, and annotators share
errors. So a comparison reports which methods are statistically tied, on which items they disagree,
and warnings about the data, rather than naming a winner. The warnings need no fit: too few labels
for confusion matrices, annotators without co-annotated items, items with a single label.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..answers import Answers
from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..base.storage import as_plain
from ..base.tables import Drawable, Table, columns_of
from ..errors import OptionError
from ..formats import as_answers, as_truth
from ..metrics import Evaluation, evaluate
from ..registry import aggregators
from . import as_method
from .aggregation import ClassAggregation
from .answer_comparison import AnswerComparison, compare_on_answers
from .classes import ClassMethod
from .held_out import HeldOut, held_out

if TYPE_CHECKING:
    from ..pages.charts import Figure


_SPARSE = 0.3  # parameters per label above which confusion matrices are mostly prior
_SINGLE = 0.1  # fraction of items with one label above which there is a warning
# The methods that are compared by default.
DEFAULT_METHODS = (
    "majority",
    "wawa",
    "dawid-skene",
    "dawid-skene-map",
    "bcc",
    "hierarchical",
    "mace",
)
_ORDINAL = ("ordinal-distance", "ordinal-latent")  # and these on an ordinal scale
_SIGNIFICANT = 2.0  # standard errors


def data_warnings(annotations: Annotations) -> list[str]:
    """Return warnings about the data, a sentence each."""
    warnings = []
    cells = cells_per_label(annotations)
    if cells > _SPARSE:
        warnings.append(
            f"There are {cells:.2g} parameters of confusion matrices for every label: "
            "plain Dawid-Skene is not to be trusted, methods with a prior are."
        )
    n_separate = n_groups(annotations)
    if n_separate > 1:
        warnings.append(
            f"Annotators fall into {n_separate} groups that share no item: "
            "quality cannot be compared between groups."
        )
    single = single_share(annotations)
    if single > _SINGLE:
        warnings.append(f"{single:.0%} of the items have one label: nothing can correct it.")
    return warnings


def cells_per_label(annotations: Annotations) -> float:
    """Return the number of free parameters of confusion matrices per label."""
    cells = annotations.n_annotators * annotations.n_classes * (annotations.n_classes - 1)
    return cells / len(annotations) if len(annotations) else 0.0


def single_share(annotations: Annotations) -> float:
    """Return the fraction of items with exactly one label."""
    return float((annotations.labels_per_item == 1).mean()) if annotations.n_items else 0.0


def n_groups(annotations: Annotations) -> int:
    """Return the number of connected groups of annotators with labels."""
    return len(np.unique(groups(annotations)[annotations.labels_per_annotator > 0]))


def groups(annotations: Annotations) -> Integers:
    """Return the connected group of every annotator, linked by co-annotated items.

    An annotator without labels is a group of their own.

    >>> annotations = Annotations.from_columns("aabcc", "vwwxy", "00000")
    >>> groups(annotations).tolist()
    [0, 0, 1, 1]
    """
    n_nodes = annotations.n_items + annotations.n_annotators  # items first
    ends = np.full(annotations.n_annotators, len(annotations))
    graph: sparse.csr_array[Any, Any] = sparse.csr_array(
        (
            np.ones(len(annotations)),
            annotations.annotator + np.int64(annotations.n_items),
            np.concatenate([annotations.index, ends]),
        ),
        shape=(n_nodes, n_nodes),
    )
    group = connected_components(graph, directed=False)[1][annotations.n_items :]
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


class ComparedMethod(NamedTuple):
    """One method of a comparison."""

    method: str
    held_out: float  # mean log-likelihood of held-out annotations
    gap: float  # to the best method
    error: float  # standard error of the gap
    tied: bool  # whether the gap is not significant
    agreement: float  # fraction of items on which it agrees with most methods
    seconds: float
    megabytes: float
    evaluation: Evaluation | None


class ContestedItem(NamedTuple):
    """An item on which methods disagree."""

    item: str
    labels: dict[str, list[str]]  # label → the methods that give it


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Drawable):
    """A comparison of methods, by held-out likelihood.

    Attributes
    ----------
    methods
        One row for every method.
    contested
        Items on which the methods disagree, those with the most even split first.
    n_contested
        Number of such items.
    n_scored
        Number of scored held-out annotations.
    warnings
        Warnings about the data, a sentence each.
    results
        The fits to all annotations, by method.
    """

    methods: tuple[ComparedMethod, ...]
    contested: tuple[ContestedItem, ...]
    n_contested: int
    n_items: int
    n_scored: int
    warnings: tuple[str, ...]
    results: Mapping[str, ClassAggregation]

    def __repr__(self) -> str:
        names = ", ".join(row.method for row in self.methods)
        return f"<Comparison of {names}: they differ on {self.n_contested} of {self.n_items} items>"

    def _chart(self) -> tuple[Figure | None, str]:
        from .sections import methods_figure

        return methods_figure(self), "there is nothing to draw: no item has two labels"

    def _table(self) -> Table:
        rows = []
        for method in self.methods:
            row = method._asdict()
            evaluation: Evaluation | None = row.pop("evaluation")
            score = None if evaluation is None else evaluation.scores.get("accuracy")
            if score is not None:
                row |= {"accuracy": score.value}
                row |= {"accuracy_low": score.low, "accuracy_high": score.high}
            rows.append(row)
        return columns_of(rows)

    @property
    def verdict(self) -> str:
        """The conclusion, in a sentence."""
        tied = [row.method for row in self.methods if row.tied]
        fraction = self.n_contested / self.n_items if self.n_items else 0.0
        differ = f"The methods differ on {self.n_contested} items ({fraction:.1%})"
        if self.n_scored == 0:
            return f"{differ}; no item has two labels, so nothing can be predicted."
        if len(tied) == 1:
            return f"{differ}; {tied[0]} predicts held-out labels best, which is weak evidence."
        methods = f"{', '.join(tied[:-1])} and {tied[-1]}"
        return f"{differ}; {methods} are tied in predicting held-out labels."

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        return as_plain(
            {
                "methods": self.methods,
                "contested": self.contested,
                "n_contested": self.n_contested,
                "n_items": self.n_items,
                "n_scored": self.n_scored,
                "signs": self.warnings,
                "verdict": self.verdict,
            }
        )


def default_methods(annotations: Annotations) -> tuple[str, ...]:
    """Return the methods that are compared by default."""
    return (*DEFAULT_METHODS, *(_ORDINAL if annotations.scale == "ordinal" else ()))


@overload
def compare(annotations: Answers, methods: Any = ..., **settings: Any) -> AnswerComparison: ...


@overload
def compare(annotations: Any, methods: Any = ..., **settings: Any) -> Comparison: ...


def compare(
    annotations: Any, methods: Any = None, **settings: Any
) -> Comparison | AnswerComparison:
    """Fit methods to the same annotations and compare them.

    Answers of other kinds than classes and numbers go to `compare_on_answers`, everything else to
    `compare_on_labels`; both take `truth`, `gold`, `folds`, `seed` and `progress`.
    """
    if isinstance(annotations, Answers):
        return compare_on_answers(annotations, methods, **settings)
    return compare_on_labels(annotations, methods or ("majority", "dawid-skene"), **settings)


def compare_on_labels(
    annotations: Annotations | str | Path | Any,
    methods: str | ClassMethod | Sequence[str | ClassMethod] = ("majority", "dawid-skene"),
    *,
    truth: Any = None,
    gold: Any = None,
    folds: int = 5,
    seeds: int = 1,
    seed: int = 0,
    most: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Fit methods to the same annotations and compare them.

    Parameters
    ----------
    annotations
        Annotations, or anything that `formats.as_answers` takes: a path, a table.
    methods
        Methods, or their specifications; one alone is scored, too.
    truth
        Known classes to evaluate with, as `{item: class}`, a pandas Series, a table or a file. No
        method sees them.
    gold
        Known classes that methods may use, given likewise.
    folds
        Number of folds of the held-out likelihood.
    seeds
        Number of random splits into folds.
    seed
        Random seed, for folds, ties and random starts.
    most
        Maximum number of contested items to list.
    progress
        Called with the number of fits done and in total.

    Examples
    --------
    >>> from dissensus import demo
    >>> comparison = compare_on_labels(demo()[0], ["majority", "dawid-skene"])
    >>> sorted(row.method for row in comparison.methods)
    ['dawid-skene', 'majority']
    """
    for name, value, least in (("folds", folds, 2), ("seeds", seeds, 1)):
        if value < least:
            raise OptionError(f"{name} = {value}, but it must be at least {least}")
    annotations = as_answers(annotations, kind="classes")
    annotations.check_classes(
        "a comparison of methods", "`evaluate` scores what `aggregate` makes of numbers"
    )
    truth, gold = as_truth(truth), as_truth(gold)
    specs = [methods] if isinstance(methods, (str, ClassMethod)) else methods
    instances = [as_method(method) for method in specs]
    names = [aggregators.describe(method) for method in instances]
    if len(set(names)) < len(names):
        raise OptionError("a method is named twice; name every method once")
    fits = [_timed(method, annotations, gold, seed) for method in instances]
    results = [result for result, _, _ in fits]
    held = _repeated(
        annotations, instances, folds=folds, seeds=range(seed, seed + seeds), progress=progress
    )
    score, gap, error = _scores(annotations, held)
    labels = np.stack([result.label for result in results])  # (method, item)
    common = _most_common(labels, annotations.n_classes)
    rows = [
        ComparedMethod(
            method=name,
            held_out=score[position],
            gap=gap[position],
            error=error[position],
            tied=bool(gap[position] <= _SIGNIFICANT * error[position]),
            agreement=float((labels[position] == common).mean())
            if annotations.n_items
            else math.nan,
            seconds=seconds,
            megabytes=megabytes,
            evaluation=None if truth is None else evaluate(result, truth, seed=seed),
        )
        for position, (name, (result, seconds, megabytes)) in enumerate(
            zip(names, fits, strict=True)
        )
    ]
    contested = np.flatnonzero((labels != labels[0]).any(axis=0))
    unidentifiable = results[0].unidentifiable
    return Comparison(
        methods=tuple(sorted(rows, key=lambda row: row.gap)),
        contested=_contested(annotations, names, labels, items=contested, most=most),
        n_contested=len(contested),
        n_items=annotations.n_items,
        n_scored=len(held.annotation),
        warnings=(
            *data_warnings(annotations),
            *([unidentifiable.reason] if unidentifiable else []),
        ),
        results=dict(zip(names, results, strict=True)),
    )


def _repeated(
    annotations: Annotations,
    methods: list[ClassMethod],
    folds: int,
    seeds: range,
    progress: Callable[[int, int], None] | None,
) -> HeldOut:
    """Return the likelihood of held-out annotations over several random splits."""
    size = len(methods) * folds
    splits = []
    for repeat, seed in enumerate(seeds):

        def advance(n_done: int, _total: int, offset: int = repeat * size) -> None:
            if progress is not None:
                progress(offset + n_done, size * len(seeds))

        splits.append(held_out(annotations, methods, folds=folds, seed=seed, progress=advance))
    return HeldOut(
        np.concatenate([split.annotation for split in splits]),
        np.concatenate([split.probability for split in splits], axis=1),
    )


def _timed(
    method: ClassMethod, annotations: Annotations, gold: Any, seed: int
) -> tuple[ClassAggregation, float, float]:
    """Return a fit, its seconds, and its megabytes."""
    tracemalloc.start()
    try:
        began = time.perf_counter()
        result = method.fit(annotations, gold=gold, seed=seed)
        seconds = time.perf_counter() - began
        return result, seconds, tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def _scores(
    annotations: Annotations, held: HeldOut
) -> tuple[list[float], list[float], list[float]]:
    """Return mean log-likelihood, gap to the best, and its standard error, of every method.

    Labels on one item are not independent, so standard errors are clustered by item.
    """
    n_methods, n_scored = held.probability.shape
    if n_scored == 0:
        unknown = [math.nan] * n_methods
        return unknown, [0.0] * n_methods, [math.inf] * n_methods
    log = np.log(held.probability)  # (method, annotation)
    mean = log.mean(axis=1)
    gap = log[mean.argmax()] - log
    item = annotations.item[held.annotation]
    error = []
    for method_gap in gap:
        excess = np.bincount(item, method_gap - method_gap.mean(), minlength=annotations.n_items)
        error.append(float(np.sqrt((excess**2).sum()) / n_scored))
    return mean.tolist(), gap.mean(axis=1).tolist(), error


def _most_common(labels: Any, n_classes: int) -> Any:
    """Return the label that most methods give to every item."""
    votes: Floats = np.zeros((labels.shape[1], n_classes + 1))
    for row in labels:
        votes[np.arange(len(row)), row] += 1  # undecided, -1, is the last column
    best = votes.argmax(axis=1)
    return np.where(best == n_classes, -1, best)


def _contested(
    annotations: Annotations, names: list[str], labels: Any, items: Any, most: int
) -> tuple[ContestedItem, ...]:
    out = []
    for item in items.tolist():
        labels_of: dict[str, list[str]] = {}
        for name, label in zip(names, labels[:, item].tolist(), strict=True):
            labels_of.setdefault(
                "undecided" if label < 0 else annotations.classes[label], []
            ).append(name)
        out.append(ContestedItem(annotations.items[item], labels_of))
    out.sort(key=lambda entry: max(len(group) for group in entry.labels.values()))
    return tuple(out[:most])
