"""Record the outputs of every verb on every kind: `python -m tests.golden.make [GROUP ...]`.

With `--diff` nothing is written, and what has changed is printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from .cases import groups, write_inputs
from .net import WIDTH, compared, outcome, record, tolerance
from .python import python_outcomes, workbench_outcomes

GROUPS = (*groups(), "python", "workbench")


def outcomes_of(group: str, folder: Path, times: bool = False) -> dict[str, Any]:
    """Return the outcomes of a group by case; the inputs are in the folder already."""
    inputs = folder / "inputs"
    if group == "python":
        return python_outcomes(inputs)
    if group == "workbench":
        return workbench_outcomes(inputs, folder)
    outcomes = {}
    for case in groups()[group]:
        start = time.perf_counter()
        outcomes[case.name] = outcome(case, inputs, folder)
        if times:
            print(f"{time.perf_counter() - start:6.2f} {group}: {case.name}")
    return outcomes


def changes(group: str, folder: Path) -> list[str]:
    """Return what has changed in a group."""
    close = {case.name: tolerance(case) for case in groups().get(group, ())}
    return compared(group, outcomes_of(group, folder), close)


def main() -> None:
    """Record or compare groups of cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", default=GROUPS)
    parser.add_argument("--diff", action="store_true", help="print what changed, write nothing")
    parser.add_argument("--times", action="store_true", help="print the seconds of every case")
    options = parser.parse_args()
    os.environ["COLUMNS"] = WIDTH
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_inputs(folder / "inputs")
        for group in options.groups:
            if options.diff:
                for line in changes(group, folder):
                    print(f"{group}: {line}")
            else:
                record(group, outcomes_of(group, folder, options.times))


if __name__ == "__main__":
    main()
