"""Run the tests that need only the core, on any system: `python -m tests.core [pytest options]`.

Networks, browsers, Dask and what only Linux has are left out; `make test` runs everything.
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {  # room → tests of it that need only the core
    "aggregation": "aggregation answers answers_rankings answers_sets answers_texts calibration "
    "clusters comparison dawid_skene_family estimation latent_models m_msr ordinal plantnet "
    "survey_methods votes",
    "metrics": "agree agreement metrics",
    "answers": "annotations",
    "quality": "camps checking cleaning copying items leave_one_out spam_score verdicts",
    "base": "fixed_point",
    "judging": "judging",
    "planning": "planning",
    "": "project registry",
    "formats": "readers_json readers_tables scales",
    "datasets": "simulation simulation_strategies",
    "reporting": "summary",
}
PATHS = ["src"]
PATHS += [
    str(Path("tests", room, f"test_{name}.py"))
    for room, names in MODULES.items()
    for name in names.split()
]


if __name__ == "__main__":
    sys.exit(pytest.main([*sys.argv[1:], *(str(ROOT / path) for path in PATHS)]))
