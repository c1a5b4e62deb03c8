"""A folder for Hugging Face: Parquet files by split, and a card that describes them.

    README.md                               the card: YAML between two lines `---`, then Markdown
    data/train-00000-of-00001.parquet       a row for every item, as `huggingface` has it

Labels are classes with their names (`ClassLabel`), which card and files declare. Several options
at once are a list of texts. A carried column `split` decides the file of an item.

The card is what Hugging Face reads (YAML), then what people read (Markdown).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ...base.files import atomic_folder, printable
from ...errors import Note
from ..collecting import options_of_label
from ..content import Card, Content
from ..format import Format, Target
from .huggingface import write

FILES = ("README.md", "data")
_ALONE = "train"  # the split of a data set without any
_TYPES: dict[Any, str] = {
    pl.String: "string",
    pl.Float64: "float64",
    pl.Boolean: "bool",
    pl.Datetime: "timestamp[us]",
}

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

Feature = Mapping[str, Any]


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
    rows = sum(n_rows for n_rows, _ in sizes.values())
    front: dict[str, Any] = {"license": card.license} if card.license else {}
    front |= {
        "pretty_name": name,
        "size_categories": [next((word for most, word in _SIZES if rows < most), "n>1M")],
        "tags": ["annotator-disagreement", "multiple-annotators"],
        "dataset_info": {"features": _yaml_features(features), "splits": splits},
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"data/{split}-*"} for split in sizes],
            }
        ],
    }
    head = "\n".join(_yaml(front))
    return (
        f"---\n{head}\n---\n\n"
        + "\n\n".join(_sections(content, card, name=name, features=features, sizes=sizes))
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
    aggregated = f" Labels are aggregated by {_plain(content.method)}." if content.is_result else ""
    yield (
        f"{len(annotations)} labels by {annotations.n_annotators} annotators on "
        f"{annotations.n_items} items.{aggregated}"
    )
    splits = [(split, str(rows)) for split, (rows, _) in sizes.items()]
    yield "## Splits\n\n" + _table(("split", "items"), splits)
    columns = [(name, _COLUMNS.get(name, "carried along, one for each label")) for name in features]
    yield "## Columns\n\n" + _table(("column", "meaning"), columns)
    classes = content.labels_of_classes
    if classes is not None:
        counts = np.bincount(classes.label, minlength=classes.n_classes).tolist()
        rows = list(zip(classes.classes.tolist(), map(str, counts), strict=True))
        omitted = f"\n\n{len(rows) - _MOST} more classes." if len(rows) > _MOST else ""
        yield "## Classes\n\n" + _table(("class", "labels"), rows[:_MOST]) + omitted
    about = "Their names are pseudonyms. " if card.pseudonyms else ""
    yield (
        f"## Annotators\n\n{about}Labels per annotator: {_range(per_annotator)}. "
        f"Labels per item: {_range(per_item)}."
    )
    if card.agreement:
        yield "## Agreement\n\n" + "\n".join(f"- {sentence}" for sentence in card.agreement)


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
        for key, entry in value.items():
            name = _scalar(key)
            if isinstance(entry, (Mapping, list)) and entry:
                yield f"{space}{name}:"
                yield from _yaml(entry, indent + (2 if isinstance(entry, Mapping) else 0))
            else:
                yield f"{space}{name}: {_scalar(entry)}"
        return
    for entry in value:
        if not isinstance(entry, Mapping):
            yield f"{space}- {_scalar(entry)}"
            continue
        head, *tail = _yaml(entry, indent + 2)
        yield f"{space}- {head.lstrip()}"
        yield from tail


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if re.fullmatch(r"[a-z][a-z0-9_]*", value) and value not in _WORDS_OF_YAML:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _yaml_features(features: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, **_yaml_feature(feature)} for name, feature in features.items()]


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


def save(content: Content, folder: str | Path) -> None:
    """Write the folder, which replaces one like it."""
    frame = write(content)
    own, frame = _split_of(frame), frame.drop("split", strict=False)
    features = {name: _feature(content, name, kind) for name, kind in frame.schema.items()}
    frame = frame.with_columns(
        _stored(content, name, feature) for name, feature in features.items()
    )
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    with atomic_folder(folder, FILES) as draft:
        (draft / "data").mkdir()
        sizes = {}
        for name, split in _file_names(own).items():
            part = frame.filter(own == name)
            file = draft / "data" / f"{split}-00000-of-00001.parquet"
            part.write_parquet(file, compression="zstd", metadata=metadata)
            sizes[split] = part.height, int(part.estimated_size())
        text = card_text(
            content, content.card, name=Path(folder).resolve().name, features=features, sizes=sizes
        )
        (draft / "README.md").write_text(text, encoding="utf-8")


def clashes(content: Content) -> list[str]:
    """Return that annotators would be published by name, and which splits get other names."""
    sentences: list[str] = []
    people = [name for name in content.people if "@" in name]
    if people:
        sentences.append(
            Note(
                f"{len(people)} annotators are e-mail addresses",
                remedy="replaces names",
                pseudonyms="KEY",
            )
        )
    split = content.column("split")
    changed = [name for name in dict.fromkeys(split or ()) if name and _safe(str(name)) != name]
    if changed:
        sentences.append(
            f"{len(changed)} splits are renamed, such as {changed[0]!r} to {_safe(changed[0])!r}"
        )
    return sentences


def _split_of(frame: pl.DataFrame) -> pl.Series:
    """Return the split of every item, that of its first label."""
    if "split" not in frame.columns:
        return pl.Series("split", [_ALONE] * frame.height, dtype=pl.String)
    return frame["split"].list.first().cast(pl.String).fill_null(_ALONE)


def _file_names(splits: pl.Series) -> dict[str, str]:
    """Return a word for every split, as a file needs it."""
    file_names: dict[str, str] = {}
    for name in splits.unique(maintain_order=True).to_list() or [_ALONE]:
        safe = _safe(name)
        numbered = (f"{safe}_{number}" for number in count(2))
        free = (
            candidate
            for candidate in chain([safe], numbered)
            if candidate not in file_names.values()
        )
        file_names[name] = next(free)
    return file_names


def _safe(split: str) -> str:
    return re.sub(r"\W+", "_", split, flags=re.ASCII).strip("_")[:60] or _ALONE


def _feature(content: Content, name: str, kind: Any) -> Feature:
    """Return how `datasets` declares a column."""
    classes = None if content.kind == "sets" else content.labels_of_classes
    if classes is not None and name in ("labels", "label", "gold"):
        names = classes.classes.tolist()
        if name != "gold" or {*content.gold.values()} <= {*names}:
            feature = {"names": names, "_type": "ClassLabel"}
            return {"feature": feature, "_type": "List"} if name == "labels" else feature
    if content.kind == "sets" and name in ("labels", "label", "gold"):
        texts = {"feature": _value("string"), "_type": "List"}
        return {"feature": texts, "_type": "List"} if name == "labels" else texts
    return _declared(kind)


def _declared(kind: Any) -> Feature:
    if isinstance(kind, pl.List):
        return {"feature": _declared(kind.inner), "_type": "List"}
    if isinstance(kind, pl.Struct):
        return {field.name: _declared(field.dtype) for field in kind.fields}
    return _value(_TYPES.get(kind.base_type(), str(kind).lower()))


def _value(dtype: str) -> Feature:
    return {"dtype": dtype, "_type": "Value"}


def _stored(content: Content, name: str, feature: Feature) -> pl.Expr:
    """Return a column as it is stored: classes as numbers, several options as lists."""
    column = pl.col(name)
    if content.kind == "sets" and name in ("labels", "label", "gold"):
        options = pl.List(pl.String)
        if name == "labels":
            return column.map_elements(
                lambda row: [options_of_label(answer) for answer in row],
                return_dtype=pl.List(options),
            )
        return column.map_elements(options_of_label, return_dtype=options)
    inner = feature.get("feature", feature)
    if not isinstance(inner, dict) or inner.get("_type") != "ClassLabel":
        return column
    codes = {class_name: code for code, class_name in enumerate(inner["names"])}
    coded = pl.element() if name == "labels" else column
    coded = coded.replace_strict(codes, return_dtype=pl.Int64)
    return column.list.eval(coded) if name == "labels" else coded


FORMAT = Format(
    "huggingface-folder",
    labels=Target(
        summary="a folder with such tables by split, class names and a card",
        kinds=("folder",),
        save=save,
        holds=frozenset({"unlabelled", "unused", "repeats", "gold", "texts"}),
        columns=None,
        clashes=clashes,
    ),
)
