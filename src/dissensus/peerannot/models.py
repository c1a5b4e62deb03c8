"""peerannot's models on our methods: replace the word `peerannot`, keep the script.

    from dissensus.models import MV, Dawid_Skene, agg_strategies

Input is `{task: {worker: label}}` as in `answers.json`; tasks, workers and labels are numbers from
0, or any names. `run()` fits; `get_probas()` and `get_answers()` return arrays with a row per task,
in the order of tasks. Classes, keys and attributes have peerannot's names, current and former.
Keyword arguments that a class does not use are accepted and have no effect, as there; so has
`sparse`, because all methods are sparse.

Results differ from peerannot where it has errors: its Dawid-Skene and GLAD underflow with many
votes on a task, and its Pl@ntNet vote learns from the first vote alone. Ties are broken by a fixed
seed instead of `np.random`, so a run repeats. Networks are trained by our loop. The tables of
strategies have all names that these have had.
"""

from __future__ import annotations

from typing import Any

from ..registry import find_by_name
from .aggregation import (
    GLAD,
    IWMV,
    WDS,
    CrowdModel,
    Dawid_Skene,
    DawidSkene,
    DawidSkeneClust,
    Entropy,
    Krippendorff_Alpha,
    MajorityVoting,
    NaiveSoft,
    PlantNet,
    Spam_Score,
    Trace_confusion,
    TwoThird,
    Wawa,
)
from .networks import AUM, WAUM, CoNAL, Crowdlayer, WAUM_perworker

__all__ = [
    "AUM",
    "DS",
    "GLAD",
    "IWMV",
    "MV",
    "WAUM",
    "WDS",
    "CoNAL",
    "CrowdModel",
    "Crowdlayer",
    "DawidSkene",
    "DawidSkeneClust",
    "Dawid_Skene",
    "Dawid_Skene_clust",
    "Entropy",
    "IterativeWawa",
    "Krippendorff_Alpha",
    "MajorityVoting",
    "NaiveSoft",
    "PlantNet",
    "Spam_Score",
    "Strategies",
    "Trace_confusion",
    "TwoThird",
    "WAUM_perworker",
    "Wawa",
    "agg_deep_strategies",
    "agg_strategies",
    "identification_strategies",
]


class Strategies(dict[str, Any]):
    """Classes by name; also found by former names, whatever the case, `-` and `_`.

    >>> table = Strategies({"naive_soft": 1}, NS=2)
    >>> list(table), table["NaiveSoft"], table["ns"]
    (['naive_soft'], 1, 2)
    """

    def __init__(self, table: dict[str, Any], **former: Any) -> None:
        super().__init__(table)
        self._former = former

    def __missing__(self, name: str) -> Any:
        return find_by_name("strategy", name, {**self, **self._former}, self)


# The names before April 2026, which the tutorials use.
MV = MajorityVoting
DS = Dawid_Skene
Dawid_Skene_clust = DawidSkeneClust
IterativeWawa = IWMV

agg_strategies = Strategies(
    {
        "majority_voting": MajorityVoting,
        "naive_soft": NaiveSoft,
        "dawid_skene": DawidSkene,
        "dawid_skene_clust": DawidSkeneClust,
        "glad": GLAD,
        "wds": WDS,
        "plantnet": PlantNet,
        "twothird": TwoThird,
        "iwmv": IWMV,
        "wawa": Wawa,
    },
    MV=MajorityVoting,
    DS=Dawid_Skene,
    DSWC=DawidSkeneClust,
    IterativeWawa=IWMV,
)
agg_deep_strategies = Strategies({"CoNAL": CoNAL, "CrowdLayer": Crowdlayer})
identification_strategies = Strategies(
    {
        "AUM": AUM,
        "WAUM_perworker": WAUM_perworker,
        "WAUM": WAUM,
        "entropy": Entropy,
        "trace_confusion": Trace_confusion,
        "spam_score": Spam_Score,
        "krippendorffAlpha": Krippendorff_Alpha,
    }
)
