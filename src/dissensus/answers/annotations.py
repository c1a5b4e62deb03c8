"""Annotations: the labels that annotators gave to items, which everything here starts from.

They are stored as integer codes, sorted by item, then annotator, then label, with separate names.
A `Part` is a range of items for the methods: a sparse matrix that counts labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from ..base.arrays import (
    Array,
    Codes,
    Floats,
    Integers,
    check_lengths,
    is_sorted,
    renumber,
    sort,
    tally,
)
from ..base.names import (
    Names,
    Selection,
    abbreviate,
    absent,
    as_names,
    as_values,
    checked_codes,
    chosen,
    code,
    coded,
    declared,
    indices_of,
    numbered,
    union,
)
from ..base.tables import gather
from ..errors import DataError, OptionError
from .annotators import KINDS, Kind, Labels, checked_kinds

if TYPE_CHECKING:
    import polars as pl
    from scipy import sparse

__all__ = [
    "KINDS",
    "SCALES",
    "Annotations",
    "Codes",
    "Floats",
    "Integers",
    "Kind",
    "Names",
    "Part",
    "Scale",
]

Scale = Literal["nominal", "ordinal", "interval", "ratio"]
SCALES: tuple[Scale, ...] = get_args(Scale)
NUMERIC: tuple[Scale, ...] = ("interval", "ratio")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Annotations(Labels):
    """Labels that annotators gave to items, each one of a few classes.

    An annotator may label an item more than once: every label counts. Classes, items and
    annotators may be declared that no label uses. On an ordinal scale classes are in order; on an
    interval or ratio scale they are named by numbers. What is read as numbers is `Numbers`.
    Annotators may have a kind: person, model or code. `left_out` counts what the reader of a file
    left out, and does not matter for equality.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", ["cat", "dog", "cat"] * 2)
    >>> annotations
    <Annotations: 6 labels by 3 annotators on 2 items; classes cat, dog>
    >>> annotations.votes().tolist()
    [[2.0, 1.0], [2.0, 1.0]]
    >>> annotations == Annotations.from_dict({"b": {"x": "cat", "y": "dog", "z": "cat"},
    ...                                "a": {"z": "cat", "y": "dog", "x": "cat"}})
    True
    """

    kind: ClassVar[str] = "classes"
    by_answer: ClassVar[tuple[str, ...]] = ("label",)

    label: Codes  # (annotation)
    classes: Names
    scale: Scale = "nominal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.scale, str) or self.scale not in SCALES:
            raise OptionError(f"no scale {self.scale!r}; there are {', '.join(SCALES)}")

    @classmethod
    def from_columns(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        label: Sequence[Any] | Array,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
        scale: Scale = "nominal",
        annotator_kinds: Iterable[Any] | Mapping[Any, Any] | None = None,
        **columns: Sequence[Any] | Array,
    ) -> Self:
        """Return annotations from three columns of names, and further columns.

        Kinds of annotators are `{annotator: kind}`, or one for each declared annotator.
        """
        check_lengths({"item": item, "annotator": annotator, "label": label, **columns})
        item, items = coded(item, items, "item")
        annotator, annotators = coded(annotator, annotators, "annotator")
        label, classes = coded(label, classes, "label")
        names: Any = {"items": items, "annotators": annotators, "classes": classes}
        names["annotator_kinds"] = annotator_kinds
        carried = {name: np.asarray(values) for name, values in columns.items()}
        return cls.from_codes(item, annotator, label, scale=scale, **names, **carried)

    @classmethod
    def from_codes(
        cls,
        item: Array,
        annotator: Array,
        label: Array,
        *,
        items: Iterable[Any] | int,
        annotators: Iterable[Any] | int,
        classes: Iterable[Any] | int,
        scale: Scale = "nominal",
        annotator_kinds: Iterable[Any] | Mapping[Any, Any] | None = None,
        **columns: Array,
    ) -> Self:
        """Return annotations from integer codes and their names, or the number of names."""
        check_lengths({"item": item, "annotator": annotator, "label": label, **columns})
        roles = {"item": items, "annotator": annotators, "class": classes}
        names = [declared(values, role) for role, values in roles.items()]
        sizes = [len(role_names) for role_names in names]
        codes = [
            checked_codes(column, size, role)
            for column, size, role in zip((item, annotator, label), sizes, roles, strict=True)
        ]
        order = None
        if not is_sorted(*codes):
            codes, order = sort(codes, sizes, keep_order=bool(columns))
        return cls(
            index=np.concatenate([[0], np.cumsum(tally(codes[0], sizes[0]))]),
            annotator=codes[1],
            label=codes[2],
            items=names[0],
            annotators=names[1],
            classes=names[2],
            scale=scale,
            annotator_kinds=checked_kinds(annotator_kinds, names[1]),
            columns={k: v if order is None else v[order] for k, v in columns.items()},
        )

    @classmethod
    def from_labels(
        cls,
        label: npt.ArrayLike,
        classes: Iterable[Any] | int,
        *,
        items: Iterable[Any] | int | None = None,
        annotator: str = "0",
    ) -> Self:
        """Return one label code per item, -1 for unlabelled, as those of one annotator.

        >>> Annotations.from_labels([0, -1, 1], classes=2)
        <Annotations: 2 labels by 1 annotators on 3 items; classes 0, 1>
        """
        codes = np.asarray(label)
        item = np.flatnonzero(codes >= 0)
        items = len(codes) if items is None else items
        names: dict[str, Any] = {"items": items, "annotators": [annotator], "classes": classes}
        return cls.from_codes(item, np.zeros_like(item), codes[item], **names)

    @classmethod
    def from_dict(
        cls, answers: Mapping[Any, Mapping[Any, Any]], *, classes: Iterable[Any] | None = None
    ) -> Self:
        """Return annotations from `{item: {annotator: label}}`; a list is several labels."""
        rows = [
            (item, annotator, label)
            for item, by_annotator in answers.items()
            for annotator, labels in by_annotator.items()
            for label in (labels if isinstance(labels, (list, tuple)) else (labels,))
        ]
        item, annotator, label = zip(*rows, strict=True) if rows else ((), (), ())
        items = code(list(answers))[1]
        return cls.from_columns(item, annotator, label, items=items, classes=classes)

    def to_dict(self, *, coded: bool = False) -> dict[str, dict[str, Any]]:
        """Return `{item: {annotator: label}}`, a list where an annotator gave several labels.

        Coded, everything is a number: the form of peerannot's `answers.json`.
        """
        items = numbered(self.n_items) if coded else self.items
        annotators = numbered(self.n_annotators) if coded else self.annotators
        labels = self.label if coded else self.classes[self.label]
        answers: dict[str, dict[str, Any]] = {name: {} for name in items.tolist()}
        columns = items[self.item], annotators[self.annotator], labels
        for item, annotator, label in zip(*(column.tolist() for column in columns), strict=True):
            labels_of = answers[item]
            if annotator in labels_of:
                earlier = labels_of[annotator]
                label = [*(earlier if isinstance(earlier, list) else [earlier]), label]
            labels_of[annotator] = label
        return answers

    @classmethod
    def from_matrix(
        cls,
        matrix: npt.ArrayLike,
        *,
        missing: object = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> Self:
        """Return annotations from a dense matrix, items in rows and annotators in columns.

        NaN, None and the empty text always mean "no label", and so does -1 among whole numbers;
        `missing` names another marker instead of -1.

        >>> Annotations.from_matrix([[0, 1, -1], [1, 1, 0]])
        <Annotations: 5 labels by 3 annotators on 2 items; classes 0, 1>
        """
        table = np.asarray(matrix)
        if table.ndim != 2:
            raise DataError(
                f"a matrix has items and annotators, but this one has {table.ndim} axes"
            )
        gaps = absent(table) | (table == (-1 if missing is None else missing))
        item, annotator = np.nonzero(~gaps)
        names = []
        for declared_names, count, axis in zip(
            (items, annotators), table.shape, ("rows", "columns"), strict=True
        ):
            names.append(numbered(count) if declared_names is None else as_names(declared_names))
            if len(names[-1]) != count:
                raise DataError(f"{len(names[-1])} names for {count} {axis}")
        label, class_names = coded(table[item, annotator], classes, "label")
        return cls.from_codes(
            item, annotator, label, items=names[0], annotators=names[1], classes=class_names
        )

    def __repr__(self) -> str:
        scale = "" if self.scale == "nominal" else f"{self.scale} "
        return (
            f"<Annotations: {len(self)} labels by {self.n_annotators} annotators "
            f"on {self.n_items} items; {scale}classes {abbreviate(self.classes)}>"
        )

    def _answers(self, rows: slice) -> Array:
        return self.classes[self.label[rows]]

    def answer_column(self) -> pl.Series:
        return gather(self.classes, self.label)

    @property
    def n_classes(self) -> int:
        """Number of classes, also those without labels."""
        return len(self.classes)

    def check_inputs(self, inputs: Sized) -> None:
        """Fail if there is not one input per item."""
        if len(inputs) != self.n_items:
            raise DataError(f"{len(inputs)} inputs, but annotations on {self.n_items} items")

    def as_classes(self) -> Annotations:
        """Return annotations: these."""
        return self

    def check_classes(self, what: str, instead: str = "") -> None:
        """Fail if labels are numbers, where only classes can be used; say what works instead."""
        if self.scale in NUMERIC:
            remedy = f"{instead}, and " if instead else ""
            raise DataError(
                f"{what} needs classes, but the labels are numbers",
                remedy=remedy + "{} or nominal makes them classes",
                scale="ordinal",
            )

    def votes(self) -> Floats:
        """Return the number of labels of every class on every item: (item, class)."""
        cells = self.item * np.int64(self.n_classes) + self.label
        counts = np.bincount(cells, minlength=self.n_items * self.n_classes)
        return counts.reshape(self.n_items, self.n_classes).astype(np.float64)

    def subset(
        self,
        *,
        items: Selection = None,
        annotators: Selection = None,
        classes: Selection = None,
        annotator_kind: Kind | None = None,
    ) -> Annotations:
        """Return the annotations on these items, by these annotators, of these classes.

        Each is given as names, or as a boolean mask; annotators may also be chosen by kind.
        """
        item, annotator, mask = self._keep(items, annotators)
        if annotator_kind is not None:
            annotator = annotator & self.is_kind(annotator_kind)
            mask &= annotator[self.annotator]
        label = chosen(classes, self.classes, "class")
        mask &= label[self.label]
        return Annotations.from_codes(
            renumber(item)[self.item[mask]],
            renumber(annotator)[self.annotator[mask]],
            renumber(label)[self.label[mask]],
            items=self.items[item],
            annotators=self.annotators[annotator],
            classes=self.classes[label],
            scale=self.scale,
            annotator_kinds=self.annotator_kinds[annotator] if len(self.annotator_kinds) else None,
            **{name: values[mask] for name, values in self.columns.items()},
        )

    def recode(self, classes: Iterable[Any]) -> Annotations:
        """Return the same annotations with all of these classes, in this order."""
        names = as_names(classes)
        table = indices_of(self.classes, names)
        used_codes = np.unique(self.label)
        if (table[used_codes] < 0).any():
            unknown = self.classes[used_codes[table[used_codes] < 0][0]]
            raise DataError(f"label {unknown!r} is not among the classes {abbreviate(names)}")
        return self.with_codes(label=table[self.label], classes=names, **self.columns)

    def with_codes(self, **changes: Any) -> Annotations:
        """Return annotations with other arguments of `from_codes`, without further columns."""
        names = ("item", "annotator", "label", "items", "annotators", "classes", "scale")
        fields = {name: getattr(self, name) for name in names} | changes
        if "annotators" in changes and "annotator_kinds" not in changes:
            kind_of = dict(
                zip(self.annotators.tolist(), self.annotator_kinds.tolist(), strict=False)
            )
            fields["annotator_kinds"] = kind_of
        changed = Annotations.from_codes(**{"annotator_kinds": self.annotator_kinds} | fields)
        return replace(changed, left_out=self.left_out)

    def with_scale(self, scale: Scale | Literal["numeric"]) -> Annotations:
        """Return the annotations on another scale; `numeric` is interval.

        Classes with an order that are named by numbers are in the order of numbers.

        >>> Annotations.from_columns("aa", "xy", "21", classes="321").with_scale("ordinal")
        <Annotations: 2 labels by 2 annotators on 1 items; ordinal classes 1, 2, 3>
        """
        changed = replace(self, scale="interval" if scale == "numeric" else scale)
        value = None if scale == "nominal" else as_values(self.classes)
        if value is None or (value[:-1] < value[1:]).all():
            return changed
        return changed.recode(self.classes[value.argsort()])

    def merge(self, more: Annotations) -> Annotations:
        """Return these annotations and more, matched by name.

        Where they are on two scales, or order other classes, the result is nominal.
        """
        relations = (self, more)
        items = union(self.items, more.items)
        annotators = union(self.annotators, more.annotators)
        classes = union(self.classes, more.classes)
        shared = sorted(self.columns.keys() & more.columns.keys())
        alike = self.scale == more.scale and (
            np.array_equal(self.classes, more.classes) or as_values(classes) is not None
        )
        return Annotations.from_codes(
            np.concatenate(
                [indices_of(relation.items, items)[relation.item] for relation in relations]
            ),
            np.concatenate(
                [
                    indices_of(relation.annotators, annotators)[relation.annotator]
                    for relation in relations
                ]
            ),
            np.concatenate(
                [indices_of(relation.classes, classes)[relation.label] for relation in relations]
            ),
            items=items,
            annotators=annotators,
            classes=classes,
            scale=self.scale if alike else "nominal",
            annotator_kinds={
                name: kind
                for relation in (more, self)
                for name, kind in zip(
                    relation.annotators.tolist(), relation.annotator_kinds, strict=False
                )
                if kind
            },
            **{
                name: np.concatenate([relation.columns[name] for relation in relations])
                for name in shared
            },
        )

    def part(self, start: int, stop: int, gold: Integers | None = None) -> Part:
        """Return a range of items for the methods."""
        return self.parts([(start, stop)], gold)[0]

    def parts(self, bounds: Sequence[tuple[int, int]], gold: Integers | None = None) -> list[Part]:
        """Return ranges of items for the methods, over one shared buffer of ones."""
        longest = max((self.index[stop] - self.index[start] for start, stop in bounds), default=0)
        ones = np.ones(longest)
        parts = []
        for start, stop in bounds:
            first, last = self.index[start], self.index[stop]
            parts.append(
                Part(
                    start=start,
                    stop=stop,
                    index=self.index[start : stop + 1] - first,
                    annotator=self.annotator[first:last],
                    label=self.label[first:last],
                    ones=ones[: last - first],
                    n_annotators=self.n_annotators,
                    n_classes=self.n_classes,
                    gold=None if gold is None else gold[start:stop],
                )
            )
        return parts


@dataclass(frozen=True, eq=False)
class Part:
    """A range of items with their annotations and gold."""

    start: int
    stop: int
    index: Integers  # (item + 1): the annotations on item i are at index[i]:index[i + 1]
    annotator: Codes  # (annotation)
    label: Codes  # (annotation)
    ones: Floats  # (annotation)
    n_annotators: int
    n_classes: int
    gold: Integers | None = None  # (item): the known class, or -1

    @cached_property
    def labels(self) -> sparse.csr_array[Any, Any]:
        """The relation as a matrix: (item, annotator and given class), counting repeats."""
        from scipy import sparse  # slow to import, and votes do without

        width = self.n_annotators * self.n_classes
        wide: type[np.signedinteger[Any]] = np.int64
        if max(width, len(self.ones)) < 2**31:
            wide = np.int32
        column = self.annotator.astype(wide)
        column *= self.n_classes
        column += self.label
        shape = (self.stop - self.start, width)
        return sparse.csr_array((self.ones, column, self.index.astype(wide)), shape=shape)

    @property
    def item(self) -> Integers:
        """The item of every annotation, counted from the first of this part."""
        return np.repeat(np.arange(self.stop - self.start), np.diff(self.index))

    @property
    def allowed(self) -> Floats | float:
        """Log mask: zero, or minus infinity where gold excludes a class: (item, class)."""
        if self.gold is None:
            return 0.0
        mask = np.zeros((len(self.gold), self.n_classes))
        gold_items = np.flatnonzero(self.gold >= 0)
        mask[gold_items] = -np.inf
        mask[gold_items, self.gold[gold_items]] = 0.0
        return mask

    @property
    def blank(self) -> npt.NDArray[np.bool_]:
        """Items without labels and gold."""
        empty = np.diff(self.index) == 0
        return empty if self.gold is None else empty & (self.gold < 0)

    def votes(self, weight: Floats | None = None) -> Floats:
        """Return the number of labels, or the sum of their weights: (item, given class)."""
        weight, size = self.ones if weight is None else weight, self.stop - self.start
        total = np.bincount(self._cells, weight, size * self.n_classes)
        return total.reshape(size, self.n_classes).astype(np.float64, copy=False)

    @property
    def _cells(self) -> Integers:
        """The cell of every label in a table (item, class)."""
        size = (self.stop - self.start) * self.n_classes
        cell = np.repeat(np.arange(0, size, self.n_classes), np.diff(self.index))
        cell += self.label
        return cell

    def given_posterior(self, posterior: Floats) -> Floats:
        """Return the posterior probability of every label that was given: (annotation)."""
        return posterior.ravel().take(self._cells)

    def by_item(self, value: Floats) -> Floats:
        """Return values of annotations, summed by item."""
        return np.bincount(self.item, value, minlength=self.stop - self.start).astype(float)

    def by_annotator(self, value: Floats) -> Floats:
        """Return values of annotations, summed by annotator."""
        return np.bincount(self.annotator, value, minlength=self.n_annotators).astype(float)
