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

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._demo import demo as demo
    from ._time_limit import time_limit as time_limit
    from .aggregation.numeric import estimate as estimate
    from .agreement import agree as agree
    from .annotations import Annotations as Annotations
    from .answers.marks import Boxes as Boxes
    from .answers.marks import Points as Points
    from .answers.marks import Spans as Spans
    from .answers.masks import Masks as Masks
    from .answers.numbers import Numbers as Numbers
    from .checking import check as check
    from .comparison import compare as compare
    from .consensus import aggregate as aggregate
    from .consensus.result import Consensus as Consensus
    from .datasets.install import install as install
    from .errors import DataError as DataError
    from .errors import DissensusError as DissensusError
    from .errors import MethodError as MethodError
    from .errors import OptionError as OptionError
    from .errors import OutputError as OutputError
    from .identification import identify as identify
    from .identification.activelab import activelab as activelab
    from .identification.crowdlab import crowdlab as crowdlab
    from .identification.items import item_scores as item_scores
    from .judging import Judging as Judging
    from .judging import judge as judge
    from .learning.classifier import CrowdClassifier as CrowdClassifier
    from .meta.few_shot import FewShotCrowd as FewShotCrowd
    from .metrics import evaluate as evaluate
    from .nn.settings import Training as Training
    from .planning import Plan as Plan
    from .planning import plan as plan
    from .readers import read as read
    from .readers import read_truth as read_truth
    from .readers.probabilities import read_probabilities as read_probabilities
    from .recovery.estimator import DistributionRecovery as DistributionRecovery
    from .registry import aggregators as aggregators
    from .registry import estimators as estimators
    from .registry import policies as policies
    from .registry import simulators as simulators
    from .reporting.group_report import report_groups as report_groups
    from .reporting.number_report import report_numbers as report_numbers
    from .reporting.report import report as report
    from .reporting.summary import summarise as summarise
    from .resampling import bootstrap as bootstrap
    from .result import Aggregation as Aggregation
    from .result import Estimation as Estimation
    from .simulation import simulate as simulate
    from .tendency.classifier import TendencyClassifier as TendencyClassifier
    from .writers import write as write

# Module → its public names, imported on first use.
_EXPORTS = {
    "_demo": "demo",
    "_time_limit": "time_limit",
    "aggregation.numeric": "estimate",
    "agreement": "agree",
    "annotations": "Annotations",
    "answers.marks": "Boxes Points Spans",
    "answers.masks": "Masks",
    "answers.numbers": "Numbers",
    "checking": "check",
    "comparison": "compare",
    "consensus": "aggregate",
    "consensus.result": "Consensus",
    "datasets.install": "install",
    "errors": "DataError DissensusError MethodError OptionError OutputError",
    "identification": "identify",
    "identification.activelab": "activelab",
    "identification.crowdlab": "crowdlab",
    "identification.items": "item_scores",
    "judging": "Judging judge",
    "learning.classifier": "CrowdClassifier",
    "meta.few_shot": "FewShotCrowd",
    "metrics": "evaluate",
    "nn.settings": "Training",
    "planning": "Plan plan",
    "readers": "read read_truth",
    "readers.probabilities": "read_probabilities",
    "recovery.estimator": "DistributionRecovery",
    "registry": "aggregators estimators policies simulators",
    "reporting.group_report": "report_groups",
    "reporting.number_report": "report_numbers",
    "reporting.report": "report",
    "reporting.summary": "summarise",
    "resampling": "bootstrap",
    "result": "Aggregation Estimation",
    "simulation": "simulate",
    "tendency.classifier": "TendencyClassifier",
    "writers": "write",
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
