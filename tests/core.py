"""Run the tests that need only the core, on any system: `python -m tests.core [pytest options]`.

Networks, browsers, Dask and what only Linux has are left out; `make test` runs everything.
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = (
    *("aggregation", "agree", "agreement", "annotations", "answers", "answers_rankings"),
    *("answers_sets", "answers_texts", "calibration", "camps", "checking", "cleaning", "clusters"),
    *("comparison", "copying", "dawid_skene_family", "estimation", "fixed_point", "items"),
    *("judging", "latent_models", "leave_one_out", "m_msr", "metrics", "ordinal", "planning"),
    *("plantnet", "project", "readers_json", "readers_tables", "registry", "scales", "simulation"),
    *("simulation_strategies", "spam_score", "summary", "survey_methods", "verdicts", "votes"),
)
PATHS = ["src", *(f"tests/test_{name}.py" for name in MODULES)]


if __name__ == "__main__":
    sys.exit(pytest.main([*sys.argv[1:], *(str(ROOT / path) for path in PATHS)]))
