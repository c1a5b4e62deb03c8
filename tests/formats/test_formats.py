"""What every registered format promises, on the fixtures of all tools."""

import pytest

from dissensus.conformance import (  # noqa: F401
    test_a_damaged_file_is_read_or_ends_in_one_clear_error,
    test_a_file_is_recognised_by_its_content,
    test_answers_have_items_annotators_and_values_of_the_kinds_that_are_named,
    test_labels_go_there_and_back,
)
from dissensus.formats.format import TOOLS, formats, head_of, tool_of
from dissensus.formats.sources import open_source

from .test_readers_json import FIXTURES

KINDS = FIXTURES.with_name("fixtures_kinds")


def _tool_of(path):
    if path.name == "doccano_shared.jsonl":  # it has no annotators
        return None
    return next((tool for tool in TOOLS if path.name.replace("_", "-").startswith(tool)), None)


FILES = [path for folder in (FIXTURES, KINDS) for path in sorted(folder.iterdir())]


@pytest.fixture
def example_files(format_name):
    files = [file for file in FILES if file.is_file() and _tool_of(file) == format_name]
    if not files:
        pytest.skip("its files are folders, or it is only written")
    return files


def test_every_format_has_its_name():
    assert {name: tool.name for name, tool in formats.items()} == {name: name for name in formats}
    assert tool_of(head_of(open_source(FIXTURES / "label_studio.json"))) == "label-studio"
