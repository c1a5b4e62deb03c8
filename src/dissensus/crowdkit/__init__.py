"""crowd-kit's classes on our methods: change the import, keep the script.

    from dissensus.crowdkit.aggregation import DawidSkene, MajorityVote

Input is a pandas table with the columns task, worker and label; labels come back as a Series by
task, posteriors as a table of tasks and labels, under the names that crowd-kit gives them. Values
keep their types. Settings have crowd-kit's names, order and defaults; those that have no meaning
here are refused. Ties go to the first label in sorted order; in crowd-kit's majority vote, since
pandas 3, to the one that comes first in the rows. `metrics` and `postprocessing` are here, too.

Results differ from crowd-kit 1.4.2 where it has errors: its MACE depends on how workers and labels
are called, restarts from one seed ten times and ignores `smoothing`; its Wawa, ZeroBasedSkill and
GoldMajorityVote fail with current scikit-learn; its Dawid-Skene counts the prior once for every
answer in its bound; its KOS fails where the votes of a task cancel out; its HRRASA compares words
with letters; its Bradley-Terry stops at the second iteration, and the noisy one has a wrong
gradient. And by choice: in KOS, who answers a task twice is heard once; models stop by our rule.
`benchmarks/accuracy/adapter.json` has the differences, and which of crowd-kit's tests pass.
"""

from __future__ import annotations

from . import aggregation, metrics, postprocessing
from .aggregation import *  # noqa: F403

__all__ = ["aggregation", "metrics", "postprocessing"]
__all__ += aggregation.__all__
