"""From many labels to one: aggregators, one file per method, imported when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..registry import aggregators
from ._base import Aggregator

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..result import Aggregation
    from .auto import Auto
    from .bcc import Bcc
    from .catd import Catd
    from .cbcc import Cbcc
    from .crh import Crh
    from .dawid_skene import DawidSkene
    from .dawid_skene_map import DawidSkeneMap
    from .diagonal import Diagonal
    from .dswc import Dswc
    from .dswc_vb import DswcVb
    from .fast_dawid_skene import FastDawidSkene
    from .glad import Glad
    from .gold_majority import GoldMajority
    from .hierarchical import Hierarchical
    from .hybrid_dawid_skene import HybridDawidSkene
    from .iwmv import Iwmv
    from .kos import Kos
    from .lfc import Lfc
    from .log_odds import LogOdds
    from .m_msr import MMsr
    from .mace import Mace
    from .majority import Majority
    from .minimax_entropy import MinimaxEntropy
    from .naive_soft import NaiveSoft
    from .one_coin import OneCoin
    from .ordinal_distance import OrdinalDistance
    from .ordinal_latent import OrdinalLatent
    from .ordinal_split import OrdinalSplit
    from .plantnet import Plantnet
    from .pm import Pm
    from .two_level import TwoLevel
    from .two_thirds import TwoThirds
    from .wawa import Wawa
    from .wds import Wds
    from .weighted import Weighted
    from .zbs import Zbs

__all__ = [
    "Aggregator",
    "Auto",
    "Bcc",
    "Catd",
    "Cbcc",
    "Crh",
    "DawidSkene",
    "DawidSkeneMap",
    "Diagonal",
    "Dswc",
    "DswcVb",
    "FastDawidSkene",
    "Glad",
    "GoldMajority",
    "Hierarchical",
    "HybridDawidSkene",
    "Iwmv",
    "Kos",
    "Lfc",
    "LogOdds",
    "MMsr",
    "Mace",
    "Majority",
    "MinimaxEntropy",
    "NaiveSoft",
    "OneCoin",
    "OrdinalDistance",
    "OrdinalLatent",
    "OrdinalSplit",
    "Plantnet",
    "Pm",
    "TwoLevel",
    "TwoThirds",
    "Wawa",
    "Wds",
    "Weighted",
    "Zbs",
    "aggregate",
]


def __getattr__(name: str) -> Any:
    for position in aggregators.table.values():
        module, _, method = position.partition(":")
        if method == name:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def aggregate(
    annotations: Annotations, method: str | Aggregator = "auto", **given: Any
) -> Aggregation:
    """Infer the label of every item.

    Parameters
    ----------
    annotations
        The annotations.
    method
        A method, or `name[setting=value,…]`.
    **given
        What `Aggregator.fit` takes: gold, start, seed, engine, progress.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> aggregate(annotations, "majority").labels.tolist()
    ['0', '1']
    """
    chosen = aggregators.create(method) if isinstance(method, str) else method
    return chosen.fit(annotations, **given)
