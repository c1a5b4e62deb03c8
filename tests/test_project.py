"""What a clone promises: its data, other systems, the citation, and GitHub's workflows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dissensus import __version__

from .core import PATHS
from .support import SHARED, SHIPPED

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

# Too long for a test, and this suite is part of one: their commands are printed, not run.
ONLY_PRINTED = {"make demo", "make docs", "make test"}

OTHER_SYSTEM = """
import importlib, os, signal, sys
from pathlib import Path

import click, jinja2, msgspec, numpy, polars, rich.console, rich.progress, rich.table, tempfile
import scipy.optimize, scipy.sparse, scipy.special, scipy.stats, vl_convert

for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None  # importing it fails
for name in ("fork", "getuid", "geteuid", "killpg", "mkfifo", "sched_getaffinity", "sysconf"):
    delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "SIGKILL", "setitimer"):
    delattr(signal, name)

import dissensus as ds

WITH_TORCH = ("deep", "models", "peerannot")
home = Path(ds.__file__).parent
for path in sorted(home.rglob("*.py")):
    parts = path.relative_to(home).with_suffix("").parts
    if parts[0] not in (*WITH_TORCH, "app", "__main__"):
        importlib.import_module(".".join(["dissensus", *parts]).removesuffix(".__init__"))

from dissensus.base.engine import Local
from dissensus.cli import main

assert Local().cores == os.cpu_count()
answers = sys.argv[1]
for command in (["check", answers], ["aggregate", answers, "-s", "DS", "-o", "labels.csv"]):
    try:
        main(command)
    except SystemExit as ending:
        assert not ending.code
assert "torch" not in sys.modules
"""


def test_shipped_data_are_those_beside_the_project():
    for path in SHIPPED.glob("*/*.csv.gz"):
        beside = SHARED / path.relative_to(SHIPPED)
        assert not beside.exists() or beside.read_bytes() == path.read_bytes()
    sets = {path.name for path in SHIPPED.iterdir() if path.is_dir()}
    assert sets == {"anesthesia", "bluebirds"}
    words = (SHIPPED / "README.md").read_text("utf-8")
    assert all(f"**{name}.**" in words for name in sets)


@pytest.mark.skipif(sys.platform != "linux", reason="this takes away what only Linux has")
def test_the_core_works_without_what_only_linux_has(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", OTHER_SYSTEM, str(SHIPPED / "bluebirds" / "answers.csv.gz")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "labels.csv").exists()


def test_the_tests_of_the_core_exist():
    assert all((ROOT / path).exists() for path in PATHS)


def test_the_citation_has_the_version_and_the_licence():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(rf"^version: {re.escape(__version__)}$", citation, re.MULTILINE)
    assert re.search(r"^license: BSD-3-Clause$", citation, re.MULTILINE)


def linux_lines() -> list[tuple[str, str]]:
    """Return the lines that workflows run on Linux, with the job each is of."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found = []
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text("utf-8"))["jobs"].items():
            if job["runs-on"] == "ubuntu-latest":
                steps = (step["run"] for step in job["steps"] if "run" in step)
                found += [
                    (f"{path.stem}: {name}", line) for run in steps for line in run.splitlines()
                ]
    return found


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_every_linux_line_of_the_workflows_runs(tmp_path):
    """With the environment of this test for that of make, which would install it."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    pytest.importorskip("build", reason="build is not installed")
    venv = tmp_path / "venv"
    venv.mkdir()
    for part in ("bin", "lib", "pyvenv.cfg"):
        if (Path(sys.prefix) / part).exists():
            (venv / part).symlink_to(Path(sys.prefix) / part)
    for stamp in (".build", ".core", ".dev", ".docs"):
        (venv / stamp).touch()
    environment = os.environ | {
        "GITHUB_REF_NAME": f"v{__version__}",
        "MAKEFLAGS": f"VENV={venv} DIST={tmp_path / 'dist'}",
    }
    lines = linux_lines()
    assert {line.split()[1] for _, line in lines if line.startswith("make")} == {
        *("demo", "docs", "test", "wheel")
    }
    for job, line in lines:
        verb = " ".join(line.split()[:2])
        command = line.replace("make", "make -n", 1) if verb in ONLY_PRINTED else line
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{job}: {line}\n{done.stdout}{done.stderr}"
    assert len(list((tmp_path / "dist").iterdir())) == 2


def test_workflows_test_every_version_that_the_package_names():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    matrix = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))["jobs"]
    named = re.findall(
        r'"Programming Language :: Python :: (3\.\d+)"',
        (ROOT / "pyproject.toml").read_text("utf-8"),
    )
    assert matrix["linux"]["strategy"]["matrix"]["python"] == named


def test_pages_of_benchmarks_are_as_their_tables_are():
    done = subprocess.run(
        [sys.executable, "benchmarks/openings.py", "--check"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
