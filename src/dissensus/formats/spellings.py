"""Names that look like one and are spelled differently: found, named, and joined on request.

Classes and annotators look like one whatever their case, their spaces and the punctuation at their
ends, and numbers whatever their form. Items may be texts, and differ if more than outer spaces, the
kind of a space, the form of an accent, or what cannot be seen does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..base.arrays import Codes, Integers, tally
from ..base.names import NUMBER, Names, as_names, text
from ..errors import DataError, Note, OptionError
from .scales import kind_of_labels

if TYPE_CHECKING:
    from ..answers import Answers
    from .reading import Reading

WAYS = ("keep", "join")
_FREE = 50  # classes from which labels may be free text

_EDGES = " \t\n\r.,;:!?\"'`´‘’“”«»()[]…"
_NOTHING = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")  # characters that take no place
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# Spaces around a name, and characters that are not surely in normal form: to be looked at closely.
_MAY_DIFFER = (
    r"^[\x00-\x20]|[\x00-\x20]$|[^\x00-\x7f\u00a1-\u00ac\u00ae-\u02ff\u0400-\u0482\u048a-\u052f"
    r"\u2010-\u2027\u2030-\u205e\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e"
    r"\U0001f300-\U0001faff]"
)
_GROUPS, _NAMES = 2, 4  # in a sentence
_REMEDY = "makes them one"  # of spelling="join"

A = TypeVar("A", Annotations, "Answers")
Groups = list[list[int]]  # positions of names that look like one


def loosely(name: str) -> object:
    """Return a name without case, spaces, punctuation at the ends, and forms of letters.

    >>> loosely("Ｙes. ") == loosely("yes"), loosely("1.0") == loosely("1")
    (True, True)
    >>> loosely("-1") == loosely("1")
    False
    """
    visible = name if name.isascii() else _as_seen(name)
    if re.match(NUMBER, visible.strip()):
        return Decimal(visible.strip())
    plain = unicodedata.normalize("NFKC", visible).casefold().strip(_EDGES)
    return re.sub(r"[\s_\-‐–]+", " ", plain) or name


def strictly(name: str) -> str:
    """Return a name with its accents and spaces in one form, without what cannot be seen.

    >>> strictly("caf\u0065\u0301\u00a01 ") == strictly("caf\u00e9 1")
    True
    """
    visible = name if name.isascii() else _as_seen(name)
    return unicodedata.normalize("NFC", visible).strip() or name


def _as_seen(name: str) -> str:
    return re.sub(f"[{_SPACES}]", " ", _NOTHING.sub("", name))


def like_one(names: Sequence[str], key: Callable[[str], object]) -> Groups:
    """Return groups of names with the same key, by position."""
    groups: dict[object, list[int]] = {}
    for position, name in enumerate(names):
        groups.setdefault(key(name), []).append(position)
    return [group for group in groups.values() if len(group) > 1]


def classes_alike(names: Names) -> Groups:
    """Return groups of classes or annotators that look like one, by position."""
    return like_one(names.tolist(), loosely)


def items_alike(names: Names) -> Groups:
    """Return groups of items that look like one, by position; fast where nothing is odd."""
    texts = names.tolist()
    odd = pl.Series(texts, dtype=pl.String).str.contains(_MAY_DIFFER).arg_true().to_list()
    if not odd:
        return []
    keys = {strictly(texts[position]) for position in odd}
    positions = sorted({*odd, *(position for position, name in enumerate(texts) if name in keys)})
    groups = like_one([texts[position] for position in positions], strictly)
    return [[positions[position] for position in group] for group in groups]


def may_differ(column: pl.Series) -> bool:
    """Return whether any name in a column might look like another one that is spelled otherwise."""
    return column.dtype == pl.String and bool(column.str.contains(_MAY_DIFFER).any())


def are_free_texts(n_names: int, n_labels: int) -> bool:
    """Return whether labels are free text: many, and hardly any of them twice."""
    return _FREE < n_names > n_labels / 3


class SpellingNote(Note):
    """A sentence about names that look like one."""


class _Role(NamedTuple):
    """The names of one role, how many labels have each, and the groups that look like one."""

    word: str  # class, annotator, item; option or thing of other kinds of answers
    names: Names
    counts: Integers
    groups: Groups


def spelling_notes(relation: Relation, *, items: bool = True, remedy: str = "") -> tuple[str, ...]:
    """Return a sentence about names that look like one and are counted apart, if there are any.

    Without `items` these are not looked at: their reader knows that none of them is odd. `remedy`
    says what joins them, if the one that asks cannot.
    """
    roles = list(_roles(relation, items=items))
    return _sentence(roles, len(relation), remedy) if roles else ()


def spelling_notes_of_counts(
    classes: Names, per_class: Integers, annotators: Names, per_annotator: Integers
) -> tuple[str, ...]:
    """Return the same of annotations that are not in memory, by what is known of them."""
    counted = (("class", classes, per_class), ("annotator", annotators, per_annotator))
    roles = [_Role(word, names, counts, classes_alike(names)) for word, names, counts in counted]
    return _sentence([role for role in roles if role.groups], int(per_class.sum()))


def _sentence(roles: Sequence[_Role], n_labels: int, remedy: str = "") -> tuple[str, ...]:
    roles = [role for role in roles if not _is_prose(role, n_labels)]
    if not roles:
        return ()
    parts = []
    for role in roles:
        listed = "; ".join(_written(role, group) for group in role.groups[:_GROUPS])
        dots = "; …" if len(role.groups) > _GROUPS else ""
        parts.append(f"{_many(len(role.groups), role.word)} ({listed}{dots})")
    sentence = f"spelled in several ways, and counted apart: {', '.join(parts)}"
    if remedy:
        return (SpellingNote(f"{sentence}; {remedy}"),)
    return (SpellingNote(sentence, remedy=_REMEDY, spelling="join"),)


def about_spellings(notes: Iterable[str]) -> list[str]:
    """Return the notes that are about spellings."""
    return [note for note in notes if isinstance(note, SpellingNote)]


def _roles(relation: Relation, *, items: bool = True) -> Iterator[_Role]:
    """Yield every role in which names look like one."""
    for word, names, code in _coded(relation):
        groups = items_alike(names) if word == "thing" else classes_alike(names)
        if groups:
            yield _Role(word, names, tally(code, len(names)), groups)
    if groups := classes_alike(relation.annotators):
        yield _Role("annotator", relation.annotators, relation.labels_per_annotator, groups)
    if items and (groups := items_alike(relation.items)):
        yield _Role("item", relation.items, relation.labels_per_item, groups)


def _coded(relation: Relation) -> Iterator[tuple[str, Names, Codes]]:
    """Yield the names that answers are made of, with a word for them and their codes."""
    if isinstance(relation, Annotations):
        yield "class", relation.classes, relation.label
    for code, names in getattr(relation, "coded_by", {}).items():
        yield code, getattr(relation, names), getattr(relation, code)


def _is_prose(role: _Role, n_labels: int) -> bool:
    """Return whether these are classes that are free text, or numbers."""
    if role.word != "class":
        return False
    numbers = kind_of_labels(role.names.tolist()).kind == "numeric"
    return numbers or are_free_texts(len(role.names), n_labels)


def _written(role: _Role, group: Sequence[int]) -> str:
    written = _quoted([role.names[position] for position in group])
    counts = [f"{name} {role.counts[at]}" for name, at in zip(written, group, strict=True)]
    return ", ".join(counts[:_NAMES]) + (" …" if len(counts) > _NAMES else "")


def _quoted(names: Sequence[str]) -> list[str]:
    """Return names in quotes; accents are escapes where two names differ in nothing else."""
    if len({unicodedata.normalize("NFC", name) for name in names}) == len(names):
        return [repr(name) for name in names]
    return [
        "".join(
            f"\\u{ord(character):04x}" if unicodedata.combining(character) else character
            for character in repr(name)
        )
        for name in names
    ]


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 'es' if word.endswith('s') else 's'}"


def check_way(spelling: str) -> None:
    """Refuse what is neither `keep` nor `join`."""
    if spelling not in WAYS:
        raise OptionError(f"spelling is {' or '.join(WAYS)}, not {spelling!r}")


@dataclass
class Joined:
    """The names that are joined, role by role, and how many labels have got another one.

    Of several spellings the most frequent one is taken, and among these the plainest.
    """

    names: dict[str, dict[str, str]] = field(default_factory=dict)  # word → {name: its new name}
    labels: int = 0

    def find(self, word: str, names: Names, counts: Integers, groups: Groups) -> dict[str, str]:
        """Return what every name of the groups but one becomes, and remember it."""
        new: dict[str, str] = {}
        for group in groups:
            texts = [names[position] for position in group]
            plain = [strictly(name) == name for name in texts]
            best = max(range(len(group)), key=lambda at: (counts[group[at]], plain[at], -at))
            new |= {name: texts[best] for name in texts if name != texts[best]}
        if new:
            self.names[word] = self.names.get(word, {}) | new
        return new

    def classes(self, names: Iterable[Any]) -> list[str]:
        """Return declared classes, each with its new name and once."""
        new = self.names.get("class", {})
        return list(dict.fromkeys(new.get(name, name) for name in map(text, names)))

    def gold(self, gold: Mapping[str, Any]) -> dict[str, Any]:
        """Return item → class with the new names of both."""
        items, classes = self.names.get("item", {}), self.names.get("class", {})
        return {
            items.get(item, item): classes.get(label, label) if isinstance(label, str) else label
            for item, label in gold.items()
        }

    def table(self, table: pl.DataFrame | None) -> pl.DataFrame | None:
        """Return a table about items with their new names, the first row of each."""
        if table is None or "item" not in self.names:
            return table
        renamed = table.with_columns(pl.col("item").replace(self.names["item"]))
        return renamed.unique("item", keep="first", maintain_order=True)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was joined, with its count, in a sentence; nothing where all names were alike."""
        if not self.names:
            return ()
        changed = f"{_many(self.labels, 'label')} changed"
        return (SpellingNote(f"spellings joined: {self.listed}; {changed}"),)

    @property
    def listed(self) -> str:
        """Which names have become others, role by role."""
        parts = []
        for word, new in self.names.items():
            pairs = list(new.items())[:_NAMES]
            written = ", ".join(" is ".join(_quoted(pair)) for pair in pairs)
            parts.append(f"{_many(len(new), word)} ({written}{' …' if len(new) > _NAMES else ''})")
        return ", ".join(parts)


def join_columns(
    frame: pl.DataFrame, joined: Joined, classes: Iterable[Any] = (), items: Iterable[Any] = ()
) -> pl.DataFrame:
    """Return a table of item, annotator and label in which names that look like one are one.

    Of declared classes and items, the spelling is taken.
    """
    declared = {"class": list(map(text, classes)), "item": items}
    changed = pl.Series([False]).new_from_index(0, frame.height)
    for role, word in (("item", "item"), ("annotator", "annotator"), ("label", "class")):
        if role not in frame.columns or frame.schema[role] != pl.String:
            continue
        counted = frame[role].drop_nulls().value_counts(name="\0count").sort(role)
        times = dict(counted.filter(pl.col(role) != "").iter_rows())
        sure = {name: times.get(name, 0) + frame.height for name in declared.get(word, ())}
        times = sure | {name: count for name, count in times.items() if name not in sure}
        names, counts = as_names(list(times)), np.array([*times.values()], dtype=np.int64)
        groups = items_alike(names) if role == "item" else classes_alike(names)
        new = joined.find(word, names, counts, groups)
        if new:
            changed |= frame[role].is_in(list(new)).fill_null(False)
            frame = frame.with_columns(pl.col(role).replace(new))
    joined.labels += int(changed.sum())
    return frame


def truth_spelled(
    truth: Mapping[str, str], items: Names, classes: Names, spelling: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return known labels with the names of predictions if they are to be joined, and a note."""
    check_way(spelling)
    joined = Joined()
    columns = {"item": list(truth), "label": list(truth.values())}
    schema = {"item": pl.String, "label": pl.String}
    join_columns(pl.DataFrame(columns, schema=schema), joined, classes.tolist(), items.tolist())
    if spelling == "join" or not joined.names:
        return joined.gold(truth), joined.notes
    sentence = f"known labels that predictions spell otherwise: {joined.listed}"
    return dict(truth), (Note(sentence, remedy=_REMEDY, spelling="join"),)


def join_mapping(answers: Mapping[Any, Any], joined: Joined) -> Mapping[Any, Any]:
    """Return `{item: {annotator: label}}` with one spelling of every name."""
    rows = [
        (text(item), text(annotator), None if label is None else text(label))
        for item, by_annotator in answers.items()
        for annotator, labels in by_annotator.items()
        for label in _as_list(labels)
    ]
    schema = {"item": pl.String, "annotator": pl.String, "label": pl.String}
    join_columns(pl.DataFrame(rows, schema=schema, orient="row"), joined)
    item_of, annotator_of, label_of = (
        joined.names.get(word, {}) for word in ("item", "annotator", "class")
    )
    out: dict[str, dict[str, Any]] = {}
    for item, by_annotator in answers.items():
        labels_of = out.setdefault(item_of.get(text(item), text(item)), {})
        for annotator, labels in by_annotator.items():
            name = annotator_of.get(text(annotator), text(annotator))
            new = [
                label if label is None else label_of.get(text(label), label)
                for label in _as_list(labels)
            ]
            if name in labels_of:
                labels_of[name] = [*_as_list(labels_of[name]), *new]
            else:
                labels_of[name] = new if isinstance(labels, (list, tuple)) else new[0]
    return out


def _as_list(labels: Any) -> list[Any]:
    return list(labels) if isinstance(labels, (list, tuple)) else [labels]


def join_names(relation: A, joined: Joined) -> A:
    """Return annotations or other answers in which names that look like one are one."""
    new = {role.word: joined.find(*role) for role in _roles(relation)}
    if not new:
        return relation
    changed = np.zeros(len(relation), dtype=bool)
    fields: dict[str, Any] = {}
    roles = [("item", "item", "items"), ("annotator", "annotator", "annotators")]
    if isinstance(relation, Annotations):
        roles.append(("class", "label", "classes"))
    for word, code, names in roles:
        fields[code], fields[names] = getattr(relation, code), getattr(relation, names)
        if word in new:
            changed |= np.isin(fields[names], as_names(list(new[word])))[fields[code]]
            fields[code], fields[names] = _renamed(fields[code], fields[names], new[word])
    if isinstance(relation, Annotations):
        joined.labels += int(changed.sum())
        renamed = relation.with_codes(**fields, **relation.columns)
        return replace(renamed, left_out=relation.left_out)
    return _join_answers(relation, joined, fields=fields, new=new, changed=changed)


def _renamed(codes: Codes, names: Names, new: Mapping[str, str]) -> tuple[Integers, Names]:
    """Return codes and names without the names that have become others."""
    texts = names.tolist()
    kept_names = [name for name in texts if name not in new]
    position = {name: at for at, name in enumerate(kept_names)}
    table = np.array([position[new.get(name, name)] for name in texts], dtype=np.int64)
    return table[codes], as_names(kept_names)


def _join_answers(
    answers: Answers,
    joined: Joined,
    *,
    fields: Mapping[str, Any],
    new: Mapping[str, Mapping[str, str]],
    changed: npt.NDArray[np.bool_],
) -> Answers:
    """Return answers of another kind, made again from their values."""
    parts: Mapping[str, str] = next((new[word] for word in answers.coded_by if word in new), {})
    values = answers.values()
    if parts:
        changed = changed | [any(name in parts for name in _parts(value)) for value in values]
        values = [_with_parts(value, parts) for value in values]
    joined.labels += int(changed.sum())
    items, annotators = fields["items"], fields["annotators"]
    rebuilt = answers.from_values(
        items[fields["item"]],
        annotators[fields["annotator"]],
        values,
        items=items,
        annotators=annotators,
    )
    is_kept = np.isin(answers.items, items)
    by_item = {name: getattr(answers, name)[is_kept] for name in answers.by_item}
    return replace(rebuilt, left_out=answers.left_out, **by_item)


def _parts(value: Sequence[Any]) -> Iterator[str]:
    """Yield the options, labels or things in a value."""
    for part in value:
        yield part if isinstance(part, str) else part.get("value", part.get("label", ""))


def _with_parts(value: Sequence[Any], new: Mapping[str, str]) -> list[Any]:
    """Return a value with other options, labels or things; refuse a thing that is there twice."""
    out: list[Any] = []
    part: Any
    for part in value:
        if isinstance(part, str):
            out.append(new.get(part, part))
            continue
        key = "value" if "value" in part else "label"
        out.append(part | {key: new.get(part[key], part[key])} if key in part else part)
    ranked = [part["value"] for part in out if isinstance(part, dict) and "value" in part]
    if len({*ranked}) < len(ranked):
        repeated = next(name for name in ranked if ranked.count(name) > 1)
        raise DataError(
            f"several spellings of {repeated!r} are ranked in one answer, so they are not the same",
            remedy="leaves them apart",
            spelling="keep",
        )
    return out


def with_joined_names(reading: Reading) -> Reading:
    """Return a reading in which names that look like one are one, with a note that counts them."""
    joined = Joined()
    answers = join_names(reading.answers, joined)
    gold, texts = joined.gold(reading.gold), joined.table(reading.texts)
    notes = (*reading.notes, *joined.notes)
    return replace(reading, answers=answers, gold=gold, texts=texts, notes=notes)


def with_spelling_notes(reading: Reading, *, items: bool = True) -> Reading:
    """Return a reading with a note about names that look like one, if there are any."""
    notes = spelling_notes(reading.answers, items=items)
    return replace(reading, notes=(*reading.notes, *notes)) if notes else reading


def with_spelling(reading: Reading, spelling: str) -> Reading:
    """Return a reading as `spelling` says, with a note about names that look like one."""
    return with_joined_names(reading) if spelling == "join" else with_spelling_notes(reading)
