"""crowd-kit's own tests on our adapter: `python benchmarks/run.py accuracy adapter_tests FOLDER`.

FOLDER holds the tests of crowd-kit's repository, which its distribution leaves out. They run twice
on this machine: with crowd-kit as it is, and with `dissensus.crowdkit` under its name. A test that
passes there and not here is named with its reason.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from pages import Section, Table

__all__ = ["main"]

# What makes a test of crowd-kit's fail here; the first key that its name contains.
REASONS = {
    "test_glad_e_step": "calls private methods of crowd-kit's class",
    "test_glad_derivative": "calls private methods of crowd-kit's class",
    "test_thetas_on_simple": "expects rows that crowd-kit mixes up, and its random start",
    "test_aggregate_mace_on_simple[em]": "expects one wrong label of ten; ours are all right",
    "test_noisy_bradley_terry_equal": "expects crowd-kit's random start: with its gradient, the "
    "first step fails; the things are equal",
    "test_noisy_bradley_terry": "expects scores that run away: the sign of crowd-kit's penalty is "
    "reversed, its gradient wrong",
    "test_alpha_krippendorff_with_distance": "expects the distance of an older nltk",
    "learning": "networks are in dissensus.CrowdClassifier",
    "datasets": "data sets are read by dissensus install",
}
_PLUGIN = """
import importlib, pkgutil, sys
import dissensus.crowdkit as ours
names = ["dissensus.crowdkit"]
names += [one.name for one in pkgutil.walk_packages(ours.__path__, "dissensus.crowdkit.")]
for name in names:
    sys.modules[name.removeprefix("dissensus.")] = importlib.import_module(name)
"""


def outcomes(folder: Path, ours: bool) -> dict[str, bool]:
    """Return whether each test passes."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "under_its_name.py").write_text(_PLUGIN, encoding="utf-8")
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", folder.name, "-q", f"--junitxml={report}"]
        command += ["-p", "no:cacheprovider", "-W", "ignore", "--continue-on-collection-errors"]
        path = [scratch, os.environ.get("PYTHONPATH", "")]
        subprocess.run(
            [*command, *(["-p", "under_its_name"] if ours else [])],
            cwd=folder.parent,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        cases = ElementTree.parse(report).getroot().iter("testcase")
        return {
            f"{case.get('classname', '').split('.', 1)[-1]}::{case.get('name')}": case.find(
                "failure"
            )
            is None
            and case.find("error") is None
            for case in cases
        }


def reason(name: str) -> str:
    """Return why a test does not pass here."""
    return next((why for part, why in REASONS.items() if part in name), "not known")


def main() -> None:
    """Run both, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="The tests of crowd-kit's repository.")
    folder = parser.parse_args().folder.resolve()
    theirs, ours = outcomes(folder, ours=False), outcomes(folder, ours=True)
    section = Section("tests", "adapter")
    files = sorted({name.split("::")[0] for name in theirs})
    rows = [[file, *_counts(theirs, ours, file)] for file in files]
    rows.append(["all", *_counts(theirs, ours, "")])
    columns = ["file", "tests", "pass there", "pass here", "pass there and here", "percent"]
    note = __doc__.split("\n\n", 1)[1]
    section.add(Table("crowd-kit's own tests", columns, rows, note))
    lost = [
        [name, "passes" if theirs[name] else "fails", reason(name)]
        for name in theirs
        if not ours.get(name)
    ]
    section.add(Table("What does not pass here", ["test", "there", "why"], lost))
    section.write()


def _counts(theirs: dict[str, bool], ours: dict[str, bool], file: str) -> list[object]:
    names = [name for name in theirs if not file or name.split("::")[0] == file]
    there, here = (sum(found.get(name, False) for name in names) for found in (theirs, ours))
    both = sum(theirs[name] and ours.get(name, False) for name in names)
    return [len(names), there, here, both, f"{100 * both / there:.1f}" if there else None]


if __name__ == "__main__":
    main()
