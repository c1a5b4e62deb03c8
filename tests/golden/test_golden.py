"""Every verb prints and writes what is recorded; `python -m tests.golden.make` records it again."""

from importlib.util import find_spec

import pytest

from .cases import write_inputs
from .make import GROUPS, changes
from .net import WIDTH


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    write_inputs(folder / "inputs")
    return folder


@pytest.mark.parametrize("group", GROUPS)
def test_outputs_are_as_recorded(group, folder, monkeypatch):
    if group == "learning" and find_spec("torch") is None:
        pytest.skip("networks need torch")
    monkeypatch.setenv("COLUMNS", WIDTH)
    assert "\n".join(changes(group, folder)[:40]) == ""
