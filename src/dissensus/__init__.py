"""Dissensus: labels from several annotators who disagree.

>>> import dissensus as ds
>>> annotations = ds.Annotations.from_columns(
...     item=["a", "a", "a", "b", "b", "b"],
...     annotator=["ann", "bob", "cy"] * 2,
...     label=["cat", "cat", "dog", "dog", "cat", "dog"],
... )
>>> ds.aggregate(annotations, "majority").labels.tolist()
['cat', 'dog']

The version, alone in its file so that `--version` imports nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aggregation import aggregate as aggregate
    from .aggregation.aggregation import Aggregation as Aggregation
    from .aggregation.aggregation import AnswerAggregation as AnswerAggregation
    from .aggregation.aggregation import ClassAggregation as ClassAggregation
    from .aggregation.aggregation import NumberAggregation as NumberAggregation
    from .aggregation.comparison import compare as compare
    from .aggregation.held_out import bootstrap as bootstrap
    from .answers.annotations import Annotations as Annotations
    from .answers.marks import Boxes as Boxes
    from .answers.marks import Points as Points
    from .answers.marks import Spans as Spans
    from .answers.masks import Masks as Masks
    from .answers.numbers import Numbers as Numbers
    from .base.progress import time_limit as time_limit
    from .datasets.demo import demo as demo
    from .datasets.install import install as install
    from .datasets.simulation import simulate as simulate
    from .deep.learning.classifier import CrowdClassifier as CrowdClassifier
    from .deep.meta.few_shot import FewShotCrowd as FewShotCrowd
    from .deep.nn.settings import Training as Training
    from .deep.recovery.estimator import DistributionRecovery as DistributionRecovery
    from .deep.tendency.classifier import TendencyClassifier as TendencyClassifier
    from .errors import DataError as DataError
    from .errors import DissensusError as DissensusError
    from .errors import MethodError as MethodError
    from .errors import OptionError as OptionError
    from .errors import OutputError as OutputError
    from .formats import read as read
    from .formats import read_truth as read_truth
    from .formats.predictions import read_probabilities as read_probabilities
    from .formats.writers_init import write as write
    from .judging import Judging as Judging
    from .judging import judge as judge
    from .metrics import agree as agree
    from .metrics import evaluate as evaluate
    from .planning import Plan as Plan
    from .planning import plan as plan
    from .quality import identify as identify
    from .quality.checks import check as check
    from .quality.crowdlab import activelab as activelab
    from .quality.crowdlab import crowdlab as crowdlab
    from .quality.items import item_scores as item_scores
    from .registry import aggregators as aggregators
    from .registry import estimators as estimators
    from .registry import policies as policies
    from .registry import simulators as simulators
    from .reporting.group_comparison import report_groups as report_groups
    from .reporting.report import report as report
    from .reporting.summary import summarise as summarise


__version__ = "0.1.0"


# Module → its public names, imported on first use.
_EXPORTS = {
    "aggregation": "aggregate",
    "aggregation.aggregation": "Aggregation AnswerAggregation ClassAggregation NumberAggregation",
    "aggregation.comparison": "compare",
    "aggregation.held_out": "bootstrap",
    "answers.annotations": "Annotations",
    "answers.marks": "Boxes Points Spans",
    "answers.masks": "Masks",
    "answers.numbers": "Numbers",
    "base.progress": "time_limit",
    "datasets.demo": "demo",
    "datasets.install": "install",
    "datasets.simulation": "simulate",
    "deep.learning.classifier": "CrowdClassifier",
    "deep.meta.few_shot": "FewShotCrowd",
    "deep.nn.settings": "Training",
    "deep.recovery.estimator": "DistributionRecovery",
    "deep.tendency.classifier": "TendencyClassifier",
    "errors": "DataError DissensusError MethodError OptionError OutputError",
    "formats": "read read_truth",
    "formats.predictions": "read_probabilities",
    "formats.writers_init": "write",
    "judging": "Judging judge",
    "metrics": "agree evaluate",
    "planning": "Plan plan",
    "quality": "identify",
    "quality.checks": "check",
    "quality.crowdlab": "activelab crowdlab",
    "quality.items": "item_scores",
    "registry": "aggregators estimators policies simulators",
    "reporting.group_comparison": "report_groups",
    "reporting.report": "report",
    "reporting.summary": "summarise",
}
_HOMES = {name: module for module, names in _EXPORTS.items() for name in names.split()}

__all__ = sorted(["__version__", *_HOMES])


if not TYPE_CHECKING:  # or a type checker would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'dissensus' has no attribute {name!r}")
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
