"""Completion in the shell, and other spellings of options."""

import os
import shutil
import subprocess
import sys

import click
import pytest

from dissensus.cli import VERBS, cli

from ..support import run

_ASK = """
source /dev/stdin <<< "$(dissensus completion bash)"
compopt() { echo "$2"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_dissensus_completion dissensus
printf "%s\\n" "${COMPREPLY[@]}"
"""


@pytest.fixture
def shell(tmp_path):
    """Return a function that asks bash what it would complete."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    command = tmp_path / "dissensus"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m dissensus "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    def complete(*words):
        done = subprocess.run(
            [bash, "-c", _ASK, "bash", "dissensus", *words],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    return complete


def test_bash_completes_verbs_options_methods_and_files(shell):
    assert shell("agg") == ["aggregate", "aggregate-deep", "agginfo"]
    assert shell("aggregate", "--str") == ["--strategy"]
    assert shell("aggregate", "-s", "dawid-skene-") == ["dawid-skene-map"]
    assert shell("next", "-s", "un") == ["uncertainty"]
    assert shell("report", "ans") == ["default"]  # files, as without completion
    assert shell("recover", "fit", "lab") == ["default"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_ends_with_the_command_that_installs_it(shell):
    done = run("completion", shell)
    script = done.stdout.decode()
    assert "_DISSENSUS_COMPLETE" in script
    assert script.splitlines()[-1].startswith(f"# installed by: dissensus completion {shell} >")


def test_without_a_shell_it_is_the_one_in_use(monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert run("completion").stdout == run("completion", "fish").stdout
    monkeypatch.setenv("SHELL", "/bin/ksh")
    done = run("completion")
    assert done.returncode == 2
    assert b"name a shell: bash, zsh, fish" in done.stderr


def commands():
    """Yield every command, also those below a verb."""
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        yield from command.commands.values() if isinstance(command, click.Group) else [command]


def test_method_is_a_spelling_of_strategy_in_every_verb_that_has_it():
    found = 0
    for command in commands():
        for option in command.params:
            if {"--strategy", "--score"} & set(option.opts):
                assert "--method" in option.aliases, command.name
                found += 1
    assert found >= 10
    assert run("methods", "--method", "x").returncode == 2


def test_the_strategy_may_be_written_as_method(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\na,x,0\na,y,0\na,z,1\n")
    spellings = [
        run("aggregate", tmp_path / "a.csv", name, "majority").stdout
        for name in ("-s", "--strategy", "--method")
    ]
    assert spellings[0]
    assert len(set(spellings)) == 1
