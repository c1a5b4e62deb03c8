"""The documents, run as they are written."""

import atexit
import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from .support import shared_path

ROOT = Path(__file__).parents[1]
# Pages as they are written, not as docs/build.py gathers them.
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if not {"_build", "methods"} & {*p.parts}),
]
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


def data_sets(page: Path) -> set[str]:
    """Return the shared data sets that commands of a page read."""
    return set(re.findall(r"^```console (\w+)$", page.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=lambda p: p.name)
def test_commands_print_what_the_page_shows(page, tmp_path):
    check_commands(blocks(page, "console"), tmp_path)


@pytest.mark.parametrize("page", [p for p in PAGES if data_sets(p)], ids=lambda p: p.name)
def test_commands_on_real_data_print_what_the_page_shows(page, tmp_path):
    for name in data_sets(page):
        shutil.copytree(shared_path(name), tmp_path / name)
        check_commands(blocks(page, f"console {name}"), tmp_path / name)


DEMO = "$ dissensus demo --folder demo > summary.txt\n"


@cache
def demo_folder() -> Path:
    """Return a folder in which the command that pages begin with has run."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = DEMO.removeprefix("$ ").strip().partition(" > ")
    program = Path(sys.executable).with_name("dissensus")
    done = subprocess.run(
        [program, *command[0].split()[1:]], cwd=folder, capture_output=True, text=True, check=True
    )
    (folder / command[2]).write_text(done.stdout, encoding="utf-8")
    return folder


def check_commands(
    given: list[str], folder: Path, programs: Path = Path(sys.executable).parent
) -> None:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "TERM": "dumb"}
    environment["DISSENSUS_PROGRESS"] = "0"  # a slow machine would print more
    for block in given:
        if DEMO in block:  # pages begin with it, and test_docs runs it once
            shutil.copytree(demo_folder(), folder, dirs_exist_ok=True)
            block = block.replace(DEMO, "")
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            done = subprocess.run(
                ["bash", "-c", f"exec 2>&1; {command}"],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            same = doctest.OutputChecker().check_output(shown, done.stdout, FLAGS)
            assert same, f"$ {command}\nshown:\n{shown}\nprinted:\n{done.stdout}"


@pytest.mark.parametrize(
    "page", [p for p in PAGES if ">>>" in p.read_text("utf-8")], ids=lambda p: p.name
)
def test_python_shows_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert done.attempted > 0
    assert done.failed == 0


def generated(folder: Path) -> list[Path]:
    """Write every generated page into a copy of docs/, and return them."""
    docs = folder / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("_build", "methods"))
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", symlinks=True)
    done = subprocess.run(
        [sys.executable, "docs/generate.py", docs],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.removesuffix(" written") for line in done.stdout.splitlines()]
    return [docs / name for name in names]


def test_generated_pages_are_whole_and_their_examples_hold(tmp_path):
    pages = generated(tmp_path)
    names = {page.relative_to(tmp_path / "docs").as_posix() for page in pages}
    assert {"choose.md", "formats.md", "commands/report.md"} <= names
    assert "methods/aggregate/dawid-skene.md" in names
    texts = {page: page.read_text("utf-8") for page in pages}
    assert not [page.name for page, text in texts.items() if "The built page has" in text]
    for page, text in texts.items():
        for target in LINK.findall(text):
            place = (page.parent / target).resolve()
            outside = not place.is_relative_to(tmp_path)
            assert outside or place.exists(), f"{page.name} links to {target}"
        if page.relative_to(tmp_path) in (old.relative_to(ROOT) for old in PAGES):
            continue  # its examples are run as they are committed
        assert not doctest.testfile(str(page), module_relative=False, optionflags=FLAGS).failed
        check_commands(blocks(page, "console"), tmp_path)


def test_committed_pages_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_lead_somewhere():
    for page in PAGES:
        for target in LINK.findall(page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_methods_are_called_by_commands_that_exist():
    import click

    from dissensus.cli import cli
    from dissensus.cli.methods import outlines

    for called in {entry.command for entry in outlines()}:
        command = cli
        for word in called.removeprefix("dissensus ").partition(" -s")[0].split():
            command = command.get_command(click.Context(command), word)
            assert command is not None, called
        assert any("-s" in option.opts for option in command.params), called


def test_every_method_has_a_formula_and_says_when_it_fails():
    from dissensus.cli.methods import outlines

    for entry in outlines():
        assert entry.fails, f"{entry.family} {entry.name}"
        assert any(block.startswith("    ") for block in entry.model), (
            f"{entry.family} {entry.name}"
        )


def test_every_public_name_is_on_the_page_of_the_api():
    import dissensus

    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    for name in dissensus.__all__:
        assert re.search(rf"^   {name}$|`ds\.{name}`", text, re.MULTILINE) or name == "__version__"


def test_every_verb_has_a_page():
    from dissensus.cli import OTHER_NAMES, VERBS

    for verb in VERBS:
        assert verb in OTHER_NAMES or (ROOT / "docs" / "commands" / f"{verb}.md").exists()
