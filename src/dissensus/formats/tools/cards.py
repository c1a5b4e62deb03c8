"""The card of a data set: what Hugging Face reads (YAML), then what people read (Markdown)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.printable import printable
from ...answers.annotations import Annotations
from ..content import Content

_MOST = 100  # classes in the table
_LONGEST = 80  # characters of a name in the text
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"))
_COLUMNS = {
    "item": "name of the item",
    "text": "text of the item",
    "gold": "known label",
    "labels": "labels, in the order of annotators",
    "annotators": "who gave each label",
    "label": "label of the aggregation",
    "confidence": "probability that the label is right",
    "soft_label": "probability of every class",
}
_MARKUP = re.compile(r"[*_`|\[\]\\~#$<>&]")
_WORDS_OF_YAML = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
# YAML takes these characters only as escapes.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


@dataclass(frozen=True)
class Card:
    """What a card has beside the data.

    Attributes
    ----------
    license
        Its identifier, such as cc-by-4.0; left out if empty.
    agreement
        Sentences about the agreement of annotators.
    pseudonyms
        Whether the names of annotators are pseudonyms.
    """

    license: str = ""
    agreement: Sequence[str] = ()
    pseudonyms: bool = False


def card_text(
    content: Content,
    card: Card,
    name: str,
    features: Mapping[str, Any],
    sizes: Mapping[str, tuple[int, int]],
) -> str:
    """Return the card; `sizes` are rows and bytes of every split."""
    splits = [
        {"name": split, "num_bytes": n_bytes, "num_examples": rows}
        for split, (rows, n_bytes) in sizes.items()
    ]
    rows = sum(one for one, _ in sizes.values())
    front: dict[str, Any] = {"license": card.license} if card.license else {}
    front |= {
        "pretty_name": name,
        "size_categories": [next((word for most, word in _SIZES if rows < most), "n>1M")],
        "tags": ["annotator-disagreement", "multiple-annotators"],
        "dataset_info": {"features": _yaml_features(features), "splits": splits},
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": one, "path": f"data/{one}-*"} for one in sizes],
            }
        ],
    }
    head = "\n".join(_yaml(front))
    return (
        f"---\n{head}\n---\n\n"
        + "\n\n".join(_sections(content, card, name, features, sizes))
        + "\n"
    )


def _sections(
    content: Content,
    card: Card,
    name: str,
    features: Mapping[str, Any],
    sizes: Mapping[str, tuple[int, int]],
) -> Iterator[str]:
    annotations = content.annotations
    per_item, per_annotator = annotations.labels_per_item, annotations.labels_per_annotator
    yield f"# {_plain(name)}"
    made = f" Labels are aggregated by {_plain(content.method)}." if content.is_result else ""
    yield (
        f"{len(annotations)} labels by {annotations.n_annotators} annotators on "
        f"{annotations.n_items} items.{made}"
    )
    splits = [(split, str(rows)) for split, (rows, _) in sizes.items()]
    yield "## Splits\n\n" + _table(("split", "items"), splits)
    columns = [(name, _COLUMNS.get(name, "carried along, one for each label")) for name in features]
    yield "## Columns\n\n" + _table(("column", "meaning"), columns)
    if isinstance(annotations, Annotations):
        counts = np.bincount(annotations.label, minlength=annotations.n_classes).tolist()
        rows = list(zip(annotations.classes.tolist(), map(str, counts), strict=True))
        more = f"\n\n{len(rows) - _MOST} more classes." if len(rows) > _MOST else ""
        yield "## Classes\n\n" + _table(("class", "labels"), rows[:_MOST]) + more
    about = "Their names are pseudonyms. " if card.pseudonyms else ""
    yield (
        f"## Annotators\n\n{about}Labels per annotator: {_range(per_annotator)}. "
        f"Labels per item: {_range(per_item)}."
    )
    if card.agreement:
        yield "## Agreement\n\n" + "\n".join(f"- {one}" for one in card.agreement)


def _range(counts: Any) -> str:
    if not len(counts):
        return "none"
    return f"{counts.min()} to {counts.max()}, median {np.median(counts):g}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([_plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(name: str) -> str:
    r"""Return a name that Markdown shows as it is, in one line.

    >>> _plain("*a*\n<b>|")
    '&#42;a&#42; &#60;b&#62;&#124;'
    """
    line = " ".join(printable(name).split())
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", line)


# YAML, as much as a card needs: blocks of mappings and lists, every text in double quotes.


def _yaml(value: Any, indent: int = 0) -> Iterator[str]:
    space = " " * indent
    if isinstance(value, Mapping):
        for key, one in value.items():
            name = _scalar(key)
            if isinstance(one, (Mapping, list)) and one:
                yield f"{space}{name}:"
                yield from _yaml(one, indent + (2 if isinstance(one, Mapping) else 0))
            else:
                yield f"{space}{name}: {_scalar(one)}"
        return
    for one in value:
        if not isinstance(one, Mapping):
            yield f"{space}- {_scalar(one)}"
            continue
        first, *rest = _yaml(one, indent + 2)
        yield f"{space}- {first.lstrip()}"
        yield from rest


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if re.fullmatch(r"[a-z][a-z0-9_]*", value) and value not in _WORDS_OF_YAML:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _yaml_features(features: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, **_yaml_feature(one)} for name, one in features.items()]


def _yaml_feature(feature: Mapping[str, Any]) -> dict[str, Any]:
    """Return a feature as cards have it: `dtype`, `list` or `struct`."""
    match feature.get("_type"):
        case "Value":
            return {"dtype": feature["dtype"]}
        case "ClassLabel":
            names = {str(code): name for code, name in enumerate(feature["names"])}
            return {"dtype": {"class_label": {"names": names}}}
        case "List":
            inner = _yaml_feature(feature["feature"])
            plain = inner.keys() == {"dtype"}
            return {"list": inner["dtype"] if plain else inner}
    return {"struct": _yaml_features(feature)}
