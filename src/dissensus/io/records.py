"""JSON as a table: a list of records, one record a line, or an object of columns."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from .coding import series_of
from .sources import Source

__all__ = ["frame_of_records", "parse"]


def frame_of_records(source: Source) -> pl.DataFrame:
    """Return JSON records, or an object of columns, as a table."""
    if source.format == "jsonl":
        records = [
            parse(source, line, n) for n, line in enumerate(source.lines(), 1) if line.strip()
        ]
    else:
        found = parse(source, source.text(), None)
        if isinstance(found, dict) and all(isinstance(v, list) for v in found.values()):
            return pl.DataFrame({name: series_of(name, values) for name, values in found.items()})
        records = found
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise source.fail("neither a list of records nor {item: {annotator: label}}")
    if not records:
        raise source.fail("no rows")
    names = list(dict.fromkeys(name for record in records for name in record))
    return pl.DataFrame(
        {
            name: series_of(name, [_plain_value(record.get(name)) for record in records])
            for name in names
        }
    )


def _plain_value(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def parse(source: Source, body: str, line: int | None) -> Any:
    """Return what a JSON text holds."""
    try:
        return json.loads(body)
    except json.JSONDecodeError as problem:
        raise source.fail(f"line {line or problem.lineno}: not JSON ({problem.msg})") from None
    except RecursionError:
        raise source.fail("JSON nested too deep") from None
