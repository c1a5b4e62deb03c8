"""Pseudonyms for annotators, and the key file that says who is who.

A pseudonym is random: nothing about a name can be computed from it. The key, a JSON object from
name to pseudonym, is written for its owner alone (mode 600); a key that is there is used again, so
that a person keeps their pseudonym in later files. Annotators are put in the order of their
pseudonyms, because the order of names would show who could be who. Models keep their names.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.files import atomic_file, output_errors, reason
from ..base.names import as_names, text
from ..base.tables import as_column
from ..errors import DataError, OptionError, OutputError
from .columns import NEEDED, plain_name
from .content import content_of
from .reading import Reading
from .targets import goes_to_folder

# Carried columns whose names show that they are about people.
_ABOUT_PEOPLE = {
    *NEEDED["annotator"],
    *("name", "email", "e_mail", "username", "user_name", "login", "ip", "user_ip", "session"),
    *("completed_by", "reviewer", "reviewed_by", "updated_by", "submitted_by", "session_id"),
}


def pseudonymise(
    reading: Reading, key: Mapping[str, str] | None = None
) -> tuple[Reading, dict[str, str]]:
    """Return a reading whose annotators have pseudonyms, and the key with the new ones.

    Values of carried columns that are names of annotators are replaced as well, and so is every
    value of a column that its name shows to be about people.

    >>> from dissensus.formats import examine
    >>> reading, key = pseudonymise(examine({"a": {"ann": "cat"}}), {"ann": "annotator-1"})
    >>> reading.annotations.to_dict(), key
    ({'a': {'annotator-1': 'cat'}}, {'ann': 'annotator-1'})
    """
    annotations, key = reading.annotations, dict(key or {})
    people = {*content_of(reading).people}
    names = [
        _pseudonym(name, key) if name in people else name
        for name in annotations.annotators.tolist()
    ]
    if len({*names}) < len(names):
        raise DataError("a pseudonym is the name of another annotator; name a new key file")
    order = sorted(range(len(names)), key=names.__getitem__)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    columns = {
        name: _replaced(values, plain_name(name) in _ABOUT_PEOPLE, people, key)
        for name, values in annotations.columns.items()
    }
    renamed = annotations.with_codes(
        annotator=position[annotations.annotator],
        annotators=as_names([names[code] for code in order]),
        **columns,
    )
    return replace(reading, answers=renamed), key


def read_key(path: str | Path) -> dict[str, str]:
    """Return the key in a file; an empty one where there is no file yet."""
    try:
        key = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise DataError(reason(problem), where=str(path)) from None
    except (ValueError, RecursionError):
        key = None
    texts = isinstance(key, dict) and all(
        isinstance(pseudonym, str) and pseudonym for pseudonym in key.values()
    )
    if not texts or len({*key.values()}) < len(key):
        message = "not a key of pseudonyms, {name: pseudonym}; name a new file"
        raise DataError(message, where=str(path))
    return key


def write_key(path: str | Path, key: Mapping[str, str]) -> None:
    """Write the key so that nobody but its owner can read it."""
    with output_errors(path):
        if Path(path).exists():
            Path(path).chmod(0o600)  # which a new version takes over
    with atomic_file(path) as draft:
        draft.chmod(0o600)  # while it is empty
        draft.write_text(json.dumps(dict(sorted(key.items())), indent=2) + "\n", encoding="utf-8")


def check_key_place(path: str, target: str, format: str | None, *, force: bool) -> None:  # noqa: A002
    """Refuse a key in the folder that is written, and beside a file unless that is forced."""
    if target == "-":
        return
    key, out = Path(path).resolve(), Path(target).resolve()
    if key == out or (goes_to_folder(target, format) and out in key.parents):
        message = "the key of pseudonyms is never written into the output"
        raise OptionError(message, where=str(path))
    if key.is_dir():
        raise OutputError("is a folder; name a file", where=str(path))
    if not goes_to_folder(target, format) and out.parent == key.parent and not force:
        raise OptionError(
            f"the key would be in the same folder as {target}, and might be published with it",
            where=str(path),
            remedy="name another folder, or {}",
            force=True,
        )


def _pseudonym(name: str, key: dict[str, str]) -> str:
    if name not in key:
        in_use = {*key.values()}
        while (new := f"annotator-{secrets.token_hex(4)}") in in_use:
            pass
        key[name] = new
    return key[name]


def _replaced(values: Any, about: bool, people: set[str], key: dict[str, str]) -> Any:
    """Return a carried column with pseudonyms instead of names."""
    if values.dtype.kind in "fMb":
        return values
    written = as_column(values).to_list()
    names = [None if value is None else text(value) for value in written]
    if not about and people.isdisjoint(names):
        return values
    new = [_pseudonym(name, key) if name and (about or name in people) else name for name in names]
    return np.array(new, dtype=object)
