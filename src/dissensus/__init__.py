"""Dissensus: labels from several annotators who disagree.

>>> import dissensus as ds
>>> said = ds.Annotations.from_columns(
...     item=["a", "a", "a", "b", "b", "b"],
...     annotator=["ann", "bob", "cy"] * 2,
...     label=["cat", "cat", "dog", "dog", "cat", "dog"],
... )
>>> ds.aggregate(said, "majority").labels.tolist()
['cat', 'dog']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._demo import demo
    from .aggregation import aggregate
    from .annotations import Annotations
    from .comparison import compare
    from .errors import DataError, DissensusError, MethodError, OptionError
    from .estimation import Estimation, estimate
    from .io import read, read_truth, write
    from .measurements import Numbers
    from .metrics import evaluate
    from .registry import aggregators, estimators, simulators
    from .reporting.summary import summarise
    from .resampling import bootstrap
    from .result import Aggregation
    from .simulation import simulate

__all__ = [
    "Aggregation",
    "Annotations",
    "DataError",
    "DissensusError",
    "Estimation",
    "MethodError",
    "Numbers",
    "OptionError",
    "__version__",
    "aggregate",
    "aggregators",
    "bootstrap",
    "compare",
    "demo",
    "estimate",
    "estimators",
    "evaluate",
    "read",
    "read_truth",
    "simulate",
    "simulators",
    "summarise",
    "write",
]

# Imported when asked for: starting costs nothing, and verbs pull in only what they need.
_HOMES = {
    "aggregate": "aggregation",
    "Aggregation": "result",
    "aggregators": "registry",
    "Annotations": "annotations",
    "DataError": "errors",
    "bootstrap": "resampling",
    "compare": "comparison",
    "demo": "_demo",
    "DissensusError": "errors",
    "estimate": "estimation",
    "Estimation": "estimation",
    "estimators": "registry",
    "evaluate": "metrics",
    "MethodError": "errors",
    "Numbers": "measurements",
    "OptionError": "errors",
    "read": "io",
    "read_truth": "io",
    "simulate": "simulation",
    "simulators": "registry",
    "summarise": "reporting.summary",
    "write": "io",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dissensus' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
