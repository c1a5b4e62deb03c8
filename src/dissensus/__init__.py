"""Dissensus: labels from several annotators who disagree.

>>> import dissensus as ds
>>> annotations = ds.Annotations.from_columns(
...     item=["a", "a", "a", "b", "b", "b"],
...     annotator=["ann", "bob", "cy"] * 2,
...     label=["cat", "cat", "dog", "dog", "cat", "dog"],
... )
>>> ds.aggregate(annotations, "majority").labels.tolist()
['cat', 'dog']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._demo import demo
    from .aggregation import aggregate
    from .aggregation.numeric import Estimation, estimate
    from .agreement import agree
    from .annotations import Annotations
    from .answers.numbers import Numbers
    from .checking import check
    from .comparison import compare
    from .datasets.install import install
    from .errors import DataError, DissensusError, MethodError, OptionError
    from .identification import identify
    from .identification.activelab import activelab
    from .identification.crowdlab import crowdlab
    from .identification.items import item_scores
    from .metrics import evaluate
    from .planning import Plan, plan
    from .readers import read, read_truth
    from .readers.probabilities import read_probabilities
    from .registry import aggregators, estimators, policies, simulators
    from .reporting.group_report import report_groups
    from .reporting.number_report import report_numbers
    from .reporting.report import report
    from .reporting.summary import summarise
    from .resampling import bootstrap
    from .result import Aggregation
    from .simulation import simulate
    from .writers import write

__all__ = [
    "Aggregation",
    "Annotations",
    "DataError",
    "DissensusError",
    "Estimation",
    "MethodError",
    "Numbers",
    "OptionError",
    "Plan",
    "__version__",
    "activelab",
    "aggregate",
    "aggregators",
    "agree",
    "bootstrap",
    "check",
    "compare",
    "crowdlab",
    "demo",
    "estimate",
    "estimators",
    "evaluate",
    "identify",
    "install",
    "item_scores",
    "plan",
    "policies",
    "read",
    "read_probabilities",
    "read_truth",
    "report",
    "report_groups",
    "report_numbers",
    "simulate",
    "simulators",
    "summarise",
    "write",
]

# Imported when asked for: starting costs nothing, and verbs pull in only what they need.
_HOMES = {
    "activelab": "identification.activelab",
    "aggregate": "aggregation",
    "Aggregation": "result",
    "aggregators": "registry",
    "agree": "agreement",
    "Annotations": "annotations",
    "DataError": "errors",
    "bootstrap": "resampling",
    "check": "checking",
    "compare": "comparison",
    "crowdlab": "identification.crowdlab",
    "demo": "_demo",
    "DissensusError": "errors",
    "estimate": "aggregation.numeric",
    "Estimation": "aggregation.numeric",
    "estimators": "registry",
    "evaluate": "metrics",
    "identify": "identification",
    "MethodError": "errors",
    "Numbers": "answers.numbers",
    "OptionError": "errors",
    "install": "datasets.install",
    "item_scores": "identification.items",
    "Plan": "planning",
    "plan": "planning",
    "policies": "registry",
    "read": "readers",
    "read_probabilities": "readers.probabilities",
    "read_truth": "readers",
    "report": "reporting.report",
    "report_numbers": "reporting.number_report",
    "report_groups": "reporting.group_report",
    "simulate": "simulation",
    "simulators": "registry",
    "summarise": "reporting.summary",
    "write": "writers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dissensus' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
