"""JSON as a table: a list of records, one record a line, or an object of columns."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from .coding import series_of
from .sources import Source

__all__ = ["frame_of_records", "parse", "records_of"]


def frame_of_records(source: Source) -> pl.DataFrame:
    """Return JSON records, or an object of columns, as a table."""
    if source.format == "jsonl":
        records = _parsed_lines(source)
    else:
        records = parse(source, source.text(), None)
        if isinstance(records, dict) and all(isinstance(v, list) for v in records.values()):
            return _frame_of_columns(source, records)
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


def records_of(source: Source) -> list[dict[str, Any]]:
    """Return the rows of any table or of JSON as they are, lists and objects in them included."""
    if source.format not in ("json", "jsonl"):
        from .tables import read_columns

        return read_columns(source, None).to_dicts()
    found = (
        _parsed_lines(source) if source.format == "jsonl" else parse(source, source.text(), None)
    )
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise source.fail("neither a list of records nor a table")
    return found


def _parsed_lines(source: Source) -> list[Any]:
    return [parse(source, line, n) for n, line in enumerate(source.lines(), 1) if line.strip()]


def _frame_of_columns(source: Source, found: dict[str, list[Any]]) -> pl.DataFrame:
    sizes = {name: len(values) for name, values in found.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} {size}" for name, size in list(sizes.items())[:12])
        raise source.fail(f"columns of different length: {told}")
    return pl.DataFrame(
        {
            name: series_of(name, [_plain_value(one) for one in values])
            for name, values in found.items()
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
    except ValueError:  # Python reads no numbers of more than 4300 digits
        where = f"line {line}: " if line else ""
        raise source.fail(f"{where}a number with thousands of digits") from None
