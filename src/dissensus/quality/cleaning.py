"""Drop labels by rules about annotators and items, and compare the consensus before and after.

A rule compares columns of the table of annotators, or with the prefix `item.` of the table of
items, with a value:

    spam_score < 0.05
    verdict == random or verdict == constant
    accuracy_high < 0.6 and labels >= 20
    item.cause == 'one label'

`and` binds more tightly than `or`. A label is dropped if the rule holds for its annotator and item;
no comparison holds for an undefined score. Rules are parsed, never executed. `verdict == spammer`
is short for random or constant.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import Annotations
from ..base.arrays import Array
from ..base.names import Names
from ..base.tables import columns_of
from ..errors import OptionError
from ..pages.sections import Section
from ..registry import aggregators
from ..result import Result, Table
from .annotators import AnnotatorScores, check_fitted, identify
from .items import ItemScores, item_scores
from .verdicts import LEFT_OUT

Mask = npt.NDArray[np.bool_]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(
    r"""\s*([A-Za-z_][\w.]*)\s*(<=|>=|==|!=|<|>)\s*
        (?:'([^']*)'|"([^"]*)"|([^\s'"<>=!].*?))\s*$""",
    re.VERBOSE,
)
_JOIN = r"""(?:^|\s+){}(?:\s+|$)(?=(?:[^'"]|'[^']*'|"[^"]*")*$)"""  # outside quotes
ITEM = "item."
SPAMMER = "spammer"  # another word for those who may be left out


class Condition(NamedTuple):
    """One comparison of a column with a value."""

    column: str
    sign: str
    value: str

    @property
    def of_item(self) -> bool:
        """Whether the column is one of the items' table."""
        return self.column.startswith(ITEM)

    def holds(self, values: Array) -> Mask:
        """Return for which values it holds; for no undefined one."""
        compare = _COMPARE[self.sign]
        if values.dtype.kind in "iufb":
            try:
                number = float(self.value)
            except ValueError:
                raise OptionError(
                    f"{self.column} is a number, but is compared with {self.value!r}"
                ) from None
            return np.asarray(compare(values, number) & ~np.isnan(values.astype(float)), bool)
        if self.sign not in ("==", "!="):
            raise OptionError(f"{self.column} is a text: compare it with == or !=")
        texts, accepted = values.tolist(), [self.value]
        if self.column == "verdict" and self.value == SPAMMER:
            accepted = list(LEFT_OUT)
        equal = np.array([text in accepted for text in texts], bool)
        defined = np.array([text is not None for text in texts], bool)
        return defined & (equal if self.sign == "==" else ~equal)


class Change(NamedTuple):
    """An item whose label changed."""

    item: str
    before: str | None
    after: str | None


@dataclass(frozen=True, eq=False, repr=False)
class Cleaned(Result):
    """Annotations without the dropped labels, and the consensus before and after.

    Attributes
    ----------
    annotations
        The remaining annotations; items, annotators and classes stay declared.
    dropped
        Which annotations were dropped.
    annotators, items
        Those without a remaining label, by name.
    before, after
        The consensus with and without the dropped labels.
    changes
        The items whose label changed.
    """

    annotations: Annotations
    dropped: Mask  # (annotation)
    annotators: Names
    items: Names
    before: ClassAggregation
    after: ClassAggregation
    changes: tuple[Change, ...]

    def __repr__(self) -> str:
        return f"<Cleaned: {self.sentence}>"

    @property
    def sentence(self) -> str:
        """A summary in a sentence."""
        return (
            f"{int(self.dropped.sum())} of {len(self.dropped)} labels dropped, "
            f"all of {len(self.annotators)} annotators and {len(self.items)} items; "
            f"{len(self.changes)} of {self.annotations.n_items} items have another label"
        )

    @property
    def tables(self) -> Mapping[str, Table]:
        """The items whose label changed."""
        return {"changes": columns_of([change._asdict() for change in self.changes])}

    def sections(self) -> tuple[Section, ...]:
        """Return what was dropped and what that changed."""
        from .sections import cleaned_sections

        return cleaned_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        return {
            "labels_dropped": int(self.dropped.sum()),
            "labels_kept": len(self.annotations),
            "annotators_dropped": self.annotators.tolist(),
            "items_dropped": self.items.tolist(),
            "changes": [change._asdict() for change in self.changes],
        }


def read_rule(rule: str) -> list[list[Condition]]:
    """Return a rule as alternatives, each a list of conditions that must all hold.

    >>> read_rule("spam_score<0.05 or verdict == 'too few labels' and labels > 3")[1][0]
    Condition(column='verdict', sign='==', value='too few labels')
    """
    alternatives = []
    for alternative in re.split(_JOIN.format("or"), rule):
        conditions = []
        for part in re.split(_JOIN.format("and"), alternative):
            match = _CONDITION.fullmatch(part)
            if match is None:
                raise OptionError(
                    f"cannot read {part.strip()!r} in {rule!r}; "
                    "write column < value, with < <= > >= == or !=, joined by and, or"
                )
            column, sign, *values = match.groups()
            value = next(value for value in values if value is not None)
            conditions.append(Condition(column, sign, value))
        alternatives.append(conditions)
    return alternatives


def clean(
    annotations: Annotations,
    rules: str | Iterable[str],
    *,
    annotators: AnnotatorScores | None = None,
    items: ItemScores | None = None,
    result: ClassAggregation | None = None,
    gold: Mapping[Any, Any] | None = None,
    scale: str | None = None,
    seed: int = 0,
) -> Cleaned:
    """Drop labels, and aggregate with and without them.

    Parameters
    ----------
    annotations
        The annotations.
    rules
        What to drop; of several rules, one has to hold.
    annotators, items
        Results of `identify` and `item_scores`; computed where a rule needs them.
    result
        The consensus before; its method is fitted again. By default `dawid-skene-map`.
    gold
        Known labels, `{item: label}`.
    scale
        The scale of labels, nominal or ordinal; by default that of the annotations.
    seed
        Random seed.

    Examples
    --------
    >>> from dissensus import simulate
    >>> crowd = simulate("hammer-spammer[ratio=0.4]", n_items=100, n_annotators=5, n_classes=3)
    >>> clean(crowd.annotations, "verdict == random")
    <Cleaned: 200 of 500 labels dropped, all of 2 annotators and 0 items; ...>
    """
    alternatives = [read_rule(rule) for rule in ([rules] if isinstance(rules, str) else rules)]
    conditions = chain.from_iterable(chain.from_iterable(alternatives))
    columns = {condition.column for condition in conditions}
    before = check_fitted(annotations, result, gold, seed)
    tables: dict[bool, Table] = {}
    if any(column.startswith(ITEM) for column in columns):
        difficulty = f"{ITEM}difficulty" in columns
        items = items or item_scores(annotations, before, difficulty=difficulty, seed=seed)
        tables[True] = items.table()
    if any(not column.startswith(ITEM) for column in columns):
        annotators = annotators or identify(
            annotations,
            before,
            gold=gold,
            scale=scale,
            models=bool(columns & {"ability", "competence"}),
            copying=any(column.startswith("copy") for column in columns),
            seed=seed,
        )
        tables[False] = annotators.table()
    dropped = np.zeros(len(annotations), dtype=bool)
    for alternative in chain.from_iterable(alternatives):
        masks = [
            _holds(annotations, condition, tables[condition.of_item]) for condition in alternative
        ]
        dropped |= np.all(masks, axis=0)
    if dropped.all() and len(annotations):
        raise OptionError("these rules leave no label; loosen them")
    remaining = annotations.keep(~dropped)
    after = aggregators.create(before.method).fit(remaining, gold=gold, seed=seed)
    changed = np.flatnonzero(before.label != after.label)
    names = (annotations.items, before.labels, after.labels)
    rows = zip(*(values[changed].tolist() for values in names), strict=True)
    return Cleaned(
        annotations=remaining,
        dropped=dropped,
        annotators=annotations.annotators[
            (annotations.labels_per_annotator > 0) & (remaining.labels_per_annotator == 0)
        ],
        items=annotations.items[
            (annotations.labels_per_item > 0) & (remaining.labels_per_item == 0)
        ],
        before=before,
        after=after,
        changes=tuple(Change(*row) for row in rows),
    )


def _holds(annotations: Annotations, condition: Condition, table: Table) -> Mask:
    """Return for which annotations a condition holds."""
    name = condition.column.removeprefix(ITEM)
    if name not in table:
        columns = ", ".join(f"{ITEM}{column}" if condition.of_item else column for column in table)
        raise OptionError(f"no column {condition.column!r} to drop by; there are {columns}")
    return condition.holds(table[name])[
        annotations.item if condition.of_item else annotations.annotator
    ]
