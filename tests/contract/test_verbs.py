"""Every verb takes every kind of answers, or says why not; results keep what they promise."""

import json
from html import unescape

import pytest

import dissensus as ds
from dissensus.pages.terminal import print_sections
from dissensus.result import Result

from .verbs import KINDS, LACKS, VERBS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_every_kind_or_says_why(verb, kind, tmp_path):
    lack = LACKS.get((verb, kind))
    if lack is None:
        check_result(VERBS[verb](kind, tmp_path))
        return
    assert lack.word in ("notimpl", "notyet", "never")
    with pytest.raises(ds.DissensusError) as caught:
        VERBS[verb](kind, tmp_path)
    assert lack.message in str(caught.value)


def check_result(result):
    """Assert what every result promises."""
    assert repr(result)
    as_dict = getattr(result, "as_dict", None) or getattr(result, "to_dict", None)
    if as_dict is not None:
        json.dumps(as_dict(), allow_nan=False)
    if hasattr(result, "to_polars"):
        frame = result.to_polars()
        assert len({len(frame[name]) for name in frame.columns}) <= 1
        assert result.to_pandas().shape == frame.shape
        assert "<table" in unescape(result._repr_html_())
    if isinstance(result, Result):
        assert result.tables
        print_sections(result.sections())
