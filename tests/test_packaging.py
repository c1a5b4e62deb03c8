"""The package as a user gets it: the wheel in an empty environment, and its types.

An environment here holds the wheel and links to what the wheel declares, with all that those
declare, and nothing else. So an undeclared dependency fails, and nothing is downloaded.
"""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from .test_docs import FLAGS, ROOT, blocks, check_commands

needs_links = pytest.mark.skipif(os.name != "posix", reason="environments are made of links")

README = """
import doctest, sys
done = doctest.testfile(sys.argv[1], module_relative=False, optionflags=int(sys.argv[2]))
assert done.attempted and not done.failed
"""
DEEP = """
import numpy as np
import dissensus as ds

annotations, truth = ds.demo()
random = np.random.default_rng(0)
inputs = random.standard_normal((annotations.n_items, 4)).astype("float32")
model = ds.CrowdClassifier("crowd-layer", training=ds.Training(epochs=1))
assert model.fit(inputs, annotations).predict(inputs).shape == (annotations.n_items,)
for name in ("DistributionRecovery", "FewShotCrowd", "TendencyClassifier"):
    assert getattr(ds, name)
import av, distributed
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Return the wheel, built as `make wheel` builds it."""
    for name in ("build", "hatchling", "packaging"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


def declared(requirements: list[str], extras: set[str]) -> dict[str, metadata.Distribution]:
    """Return what requirements lead to, by name; fail where the version here is another one."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found, todo = {}, [(text, extras) for text in requirements]
    seen = set()
    while todo:
        text, of = todo.pop()
        need = Requirement(text)
        if need.marker and not any(need.marker.evaluate({"extra": one}) for one in (of or {""})):
            continue
        name = canonicalize_name(need.name)
        if (name, *sorted(need.extras)) in seen:
            continue
        seen.add((name, *sorted(need.extras)))
        if name == "dissensus":  # an extra that consists of others
            todo += [(one, need.extras) for one in requirements]
            continue
        try:
            one = found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            pytest.skip(f"{name}, which the wheel asks for, is not installed")
        assert need.specifier.contains(one.version, prereleases=True), (text, one.version)
        todo += [(more, need.extras) for more in one.requires or []]
    return found


def environment(wheel: Path, folder: Path, extras: set[str]) -> Path:
    """Make an environment with the wheel and what it declares; return its python."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        about = metadata.PathDistribution(zipfile.Path(archive, name.removesuffix("METADATA")))
        needs = declared(about.requires or [], extras)
    for one in needs.values():
        for top in {path.parts[0] for path in one.files or [] if path.parts[0] != ".."}:
            source = Path(str(one.locate_file(top)))
            if source.exists() and not (site / top).exists():
                (site / top).symlink_to(source)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    offline = ["--no-deps", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(
        [*install, *offline, str(wheel)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return python


def run_in(python: Path, folder: Path, code: str, *arguments: object) -> None:
    """Run a script with that python and nothing of this environment."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(
        [str(python), "-I", "-c", code, *map(str, arguments)],
        cwd=folder,
        env=clean | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("dissensus/")}
    here = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "dissensus").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert held == here
    assert "dissensus/py.typed" in held
    assert any(name.endswith("templates/report.html") for name in held)


@needs_links
def test_the_readme_runs_in_an_environment_with_the_wheel_alone(wheel, tmp_path, monkeypatch):
    python = environment(wheel, tmp_path / "env", set())
    work = tmp_path / "work"
    work.mkdir()
    run_in(python, work, "import importlib.util as u; assert u.find_spec('torch') is None")
    run_in(python, work, README, ROOT / "README.md", FLAGS)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    check_commands(blocks(ROOT / "README.md", "console"), work, python.parent)


@needs_links
def test_networks_run_in_an_environment_with_the_wheel_and_its_extras(wheel, tmp_path):
    python = environment(wheel, tmp_path / "env", {"dask", "deep", "video"})
    run_in(python, tmp_path, DEEP)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_script_of_a_user_has_complete_types(checker):
    pytest.importorskip(checker, reason=f"{checker} is not installed")
    if checker == "pyright" and shutil.which("node") is None:
        pytest.skip("pyright needs Node")
    options = ["--pythonpath", sys.executable] if checker == "pyright" else []
    command = [sys.executable, "-m", checker, *options, "tests/typed_user.py"]
    paths = {"MYPYPATH": "src", "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | paths, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
