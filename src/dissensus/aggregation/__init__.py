"""Aggregation: the labels of items from the annotations of several annotators.

One file per method, imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..answers.selections import without_own
from ..errors import MethodError, OptionError
from ..formats import as_answers, as_truth
from ..method import (
    MACHINE_MEMORY,
    Aggregator,
    Checkpoints,
    FitContext,
    Fitted,
    Progress,
    check_size,
    no_progress,
)
from ..registry import aggregators
from .em import EMAggregator, Expected

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..base.arrays import Floats
    from ..base.engine import Engine
    from ..result import Aggregation
    from .auto import Auto as Auto
    from .bcc import Bcc as Bcc
    from .bcc import Cbcc as Cbcc
    from .crossed_effects import CrossedEffects as CrossedEffects
    from .dawid_skene import DawidSkene as DawidSkene
    from .dawid_skene import DawidSkeneMap as DawidSkeneMap
    from .dawid_skene import FastDawidSkene as FastDawidSkene
    from .dawid_skene import HybridDawidSkene as HybridDawidSkene
    from .dawid_skene import Wds as Wds
    from .dswc import Dswc as Dswc
    from .dswc import DswcVb as DswcVb
    from .glad import Glad as Glad
    from .lfc import Lfc as Lfc
    from .m_msr import MMsr as MMsr
    from .mace import Mace as Mace
    from .message_passing import Kos as Kos
    from .message_passing import ViBp as ViBp
    from .message_passing import ViMf as ViMf
    from .minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from .multidimensional import Multidimensional as Multidimensional
    from .one_coin import Diagonal as Diagonal
    from .one_coin import Hierarchical as Hierarchical
    from .one_coin import OneCoin as OneCoin
    from .one_coin import TwoLevel as TwoLevel
    from .ordinal_distance import OrdinalDistance as OrdinalDistance
    from .ordinal_distance import OrdinalSplit as OrdinalSplit
    from .ordinal_latent import OrdinalLatent as OrdinalLatent
    from .truth_discovery import Catd as Catd
    from .truth_discovery import Crh as Crh
    from .truth_discovery import Pm as Pm
    from .votes import GoldMajority as GoldMajority
    from .votes import Majority as Majority
    from .votes import NaiveSoft as NaiveSoft
    from .votes import TwoThirds as TwoThirds
    from .votes import Weighted as Weighted
    from .weighted_votes import Iwmv as Iwmv
    from .weighted_votes import LogOdds as LogOdds
    from .weighted_votes import Plantnet as Plantnet
    from .weighted_votes import Wawa as Wawa
    from .weighted_votes import Zbs as Zbs

__all__ = [
    "MACHINE_MEMORY",
    "Aggregator",
    "Checkpoints",
    "EMAggregator",
    "Expected",
    "FitContext",
    "Fitted",
    "Progress",
    "aggregate",
    "as_method",
    "check_authors",
    "check_size",
    "no_progress",
    *(target.partition(":")[2] for target in aggregators.table.values()),
]


def __getattr__(name: str) -> Any:
    return aggregators.load(name)


def as_method(method: str | Aggregator) -> Aggregator:
    """Return a method from its specification; files that its settings name are read."""
    aggregator = aggregators.create(method) if isinstance(method, str) else method
    if not isinstance(aggregator, Aggregator):
        raise MethodError(f"a method is a name or an Aggregator, not {aggregator!r}")
    if aggregator.side_tables:
        from ..formats.side_tables import read_side_tables

        return read_side_tables(aggregator, aggregator.side_tables)
    return aggregator


def check_authors(method: Aggregator) -> None:
    """Refuse to leave out authors' own labels for a method that counts them."""
    if "authors" in method.side_tables:
        name = aggregators.describe(method).partition("[")[0]
        raise OptionError(f"{name} counts authors' own labels: write {name}[authors=FILE]")


def aggregate(
    annotations: Annotations | str | Path | Any,
    method: str | Aggregator = "auto",
    *,
    gold: Any = None,
    authors: Mapping[str, str] | str | Path | None = None,
    start: Aggregation | Floats | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
    features: Floats | None = None,
) -> Aggregation:
    """Infer the label of every item.

    Parameters
    ----------
    annotations
        Annotations, or anything that `formats.as_answers` takes: a path, a pandas, polars or
        Arrow table, a mapping.
    method
        A method, or `name[setting=value,…]`.
    gold
        Known labels, as `{item: label}`, a pandas Series, a table or a file: they are kept, and
        methods with parameters learn from them.
    authors
        Whose item it is, `{item: annotator}`, or a file: labels of authors on their own items are
        left out.
    start
        A posterior to start from: an earlier result or an array (item, class). Only iterative
        methods use it.
    seed
        Random seed, for ties and random starts.
    engine
        Where to work; by default the threads of this machine.
    progress
        Called after every iteration with its number and the objective.
    features
        Features of the items, (item, feature), for methods that use them.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> aggregate(annotations, "majority").labels.tolist()
    ['0', '1']
    """
    annotations = as_answers(annotations, kind="classes")
    annotations.check_classes("aggregate", "`estimate` takes numbers")
    aggregator = as_method(method)
    if authors is not None:
        from ..formats.side_tables import read_authors

        check_authors(aggregator)
        author_of = authors if isinstance(authors, Mapping) else read_authors(authors)
        annotations, _ = without_own(annotations, author_of)
    return aggregator.fit(
        annotations,
        gold=as_truth(gold),
        start=start,
        seed=seed,
        engine=engine,
        progress=progress,
        features=features,
    )
