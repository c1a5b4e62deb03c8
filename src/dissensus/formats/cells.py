"""Lists in the cells of a CSV, as Python, pandas, NumPy or JSON write them.

A cell is `['pos', 'neg']`, `["pos", "neg"]`, `['pos' 'neg']`, `[UUID('…'), None]` or
`[array(['a', 'b'], dtype=object)]`. Nothing in it is evaluated: it is taken apart into brackets,
texts and words.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<mark>[\[\](),])
      | (?P<text>[rRuUbB]?'(?:[^'\\]|\\.)*' | [rRuUbB]?"(?:[^"\\]|\\.)*")
      | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<setting>\w+=)
      | (?P<word>[\w.<>]+)
    )\s*""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    **dict.fromkeys(("None", "null", "nan", "NaN", "NA", "<NA>", "NaT"), None),
    **dict.fromkeys(("True", "true"), True),
    **dict.fromkeys(("False", "false"), False),
}
_DEEPEST = 20


def parse_list(cell: str) -> list[Any] | None:
    """Return the list in a cell; nothing where it is none, or not whole.

    >>> parse_list("['pos' 'neg']"), parse_list("[3, nan, [True]]"), parse_list("pos")
    (['pos', 'neg'], [3, None, [True]], None)
    """
    if not cell.lstrip().startswith("["):
        return None
    try:
        tokens = _tokens(cell)
        value = _value(next(tokens), tokens, 0)
        return value if isinstance(value, list) and next(tokens, None) is None else None
    except (ValueError, SyntaxError, StopIteration):
        return None


def _tokens(cell: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(cell):
        match = _TOKEN.match(cell, position)
        if match is None or match.lastgroup is None:
            raise ValueError(cell[position : position + 20])
        yield match.lastgroup, match[match.lastgroup]
        position = match.end()


def _value(token: tuple[str, str], tokens: Iterator[tuple[str, str]], depth: int) -> Any:
    kind, given = token
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    if token == ("mark", "["):
        return list(_until("]", tokens, depth))
    if token == ("mark", "("):
        return list(_until(")", tokens, depth))
    if kind == "text":
        return _text(given)
    if kind == "number":
        return float(given) if re.search(r"[.eE]", given) else int(given)
    if kind == "word" and given in _WORDS:
        return _WORDS[given]
    if kind == "word" and next(tokens) == ("mark", "("):  # UUID('…'), array([…])
        return next(_until(")", tokens, depth), None)
    raise ValueError(given)


def _text(quoted: str) -> str:
    """Return one text between quotes, with the escapes of JSON or of Python."""
    with suppress(ValueError):
        return str(json.loads(quoted))
    value = ast.literal_eval(quoted)
    return value if isinstance(value, str) else value.decode("utf-8")


def _until(end: str, tokens: Iterator[tuple[str, str]], depth: int) -> Iterator[Any]:
    """Yield the values up to a bracket; settings such as `dtype=object` are skipped."""
    values = []
    while (token := next(tokens)) != ("mark", end):
        if token[0] == "setting":
            next(tokens)
        elif token != ("mark", ","):
            values.append(_value(token, tokens, depth + 1))
    return iter(values)
