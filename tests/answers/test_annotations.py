import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus import Annotations, DataError, Numbers, read
from dissensus.base.names import code
from dissensus.formats import as_answers
from dissensus.formats.cells import code_texts, rows_of_hash
from dissensus.formats.long_tables import code_columns

from ..support import annotation_rows, relation, rows_of

ROWS = [("a", "x", "cat"), ("b", "x", "dog"), ("a", "y", "dog"), ("a", "x", "cat")]


@given(rows=annotation_rows(), order=st.randoms())
def test_the_order_of_rows_leaves_no_trace(rows, order):
    shuffled = rows.copy()
    order.shuffle(shuffled)
    assert relation(rows) == relation(shuffled)


@given(rows=annotation_rows())
def test_rows_come_out_as_they_went_in(rows):
    assert sorted(rows_of(relation(rows))) == sorted(rows)


@given(rows=annotation_rows())
def test_rows_are_sorted_and_the_index_points_at_them(rows):
    annotations = relation(rows)
    keys = list(
        zip(
            annotations.item.tolist(),
            annotations.annotator.tolist(),
            annotations.label.tolist(),
            strict=True,
        )
    )
    assert keys == sorted(keys)
    for position in range(annotations.n_items):
        assert set(
            annotations.item[annotations.index[position] : annotations.index[position + 1]].tolist()
        ) <= {position}


def test_codes_have_the_smallest_type_that_fits():
    annotations = Annotations.from_codes(
        [0, 299], [0, 69_999], [0, 1], items=300, annotators=70_000, classes=2
    )
    assert (annotations.item.dtype, annotations.annotator.dtype, annotations.label.dtype) == (
        np.uint16,
        np.uint32,
        np.uint8,
    )


def test_repeated_labels_are_counted():
    assert relation(ROWS).votes().tolist() == [[2, 1], [0, 1]]
    assert relation(ROWS).part(0, 1).votes().tolist() == [[2, 1]]
    assert relation(ROWS).part(0, 2).labels.toarray().tolist() == [[2, 0, 0, 1], [0, 1, 0, 0]]


def test_declared_names_keep_their_order_and_may_be_unused():
    annotations = relation(
        ROWS, classes=["fox", "dog", "cat"], items=["b", "c", "a"], annotators="yxw"
    )
    assert annotations.votes().tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 2]]
    assert annotations.labels_per_annotator.tolist() == [1, 3, 0]


def test_numbers_among_names_are_ordered_as_numbers():
    annotations = Annotations.from_columns(["10", "9", "-1"], ["x"] * 3, [1.0, 2, "1e1"])
    assert annotations.items.tolist() == ["-1", "9", "10"]
    assert annotations.classes.tolist() == ["1", "2", "1e1"]


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1)
    | st.lists(st.integers(-300, 300).map(str) | st.floats(-9, 9).map(str), min_size=1)
)
def test_names_are_coded_alike_in_python_and_in_tables(names):
    codes, known = code(names)
    table_codes, table_known = code_columns(pl.DataFrame({"x": names}))["x"]
    assert known.tolist() == table_known.tolist()
    assert codes.tolist() == table_codes.tolist()
    assert [known[position] for position in codes] == names


def test_all_ways_in_give_the_same_relation():
    item, annotator, label = zip(*ROWS, strict=True)
    columns = {"task": item, "worker": annotator, "label": label}
    expected = relation(ROWS)
    assert as_answers(pl.DataFrame(columns)) == expected
    assert as_answers(pd.DataFrame(columns)) == expected
    assert as_answers(pa.table(columns)) == expected
    assert Annotations.from_dict(expected.to_dict()) == expected
    assert read(pl.DataFrame(columns).lazy()) == expected
    assert read(pd.DataFrame(columns).astype("category")) == expected


def test_whole_numbers_in_tables_are_names_without_a_point():
    columns = {"task": [1, 2, 10], "worker": [1.0, 2.0, None], "label": [True, False, True]}
    annotations = read(pd.DataFrame(columns), missing="drop")
    assert annotations.items.tolist() == ["1", "2"]
    assert annotations.annotators.tolist() == ["1", "2"]
    assert annotations.classes.tolist() == ["false", "true"]


def test_an_enum_column_declares_its_classes_in_order():
    label = pl.Series(["low", "high"], dtype=pl.Enum(["low", "mid", "high"]))
    annotations = read(pl.DataFrame({"item": ["a", "b"], "annotator": ["x", "x"], "label": label}))
    assert annotations.classes.tolist() == ["low", "mid", "high"]
    assert annotations.label.tolist() == [0, 2]


@given(rows=annotation_rows(), more=annotation_rows(classes="0129", items="efgh"))
def test_merging_is_having_all_rows(rows, more):
    assert relation(rows).merge(relation(more)) == relation([*rows, *more])


def test_merging_keeps_declared_classes_in_order():
    merged = relation(ROWS, classes=["dog", "cat"]).merge(relation([("z", "x", "ant")]))
    assert merged.classes.tolist() == ["dog", "cat", "ant"]


def test_recoding_keeps_the_labels():
    annotations = relation(ROWS).recode(["fox", "dog", "cat"])
    assert annotations.classes.tolist() == ["fox", "dog", "cat"]
    assert sorted(rows_of(annotations)) == sorted(ROWS)
    with pytest.raises(DataError, match="label 'dog' is not among the classes cat"):
        annotations.recode(["cat"])


@pytest.mark.parametrize("dtype", [float, object])
def test_a_matrix_may_mark_missing_labels_in_several_ways(dtype):
    matrix = np.array([[0, 1, -1], [1, -1, -1]])
    gaps = np.where(matrix == -1, np.nan if dtype is float else None, matrix.astype(dtype))
    expected = Annotations.from_matrix(matrix)
    assert expected.votes().tolist() == [[1, 1], [0, 1]]
    assert expected.n_annotators == 3
    assert Annotations.from_matrix(gaps) == expected
    assert Annotations.from_matrix(np.where(matrix == -1, 99, matrix), missing=99) == expected


def test_a_subset_keeps_names_and_carried_columns():
    item, annotator, label = zip(*ROWS, strict=True)
    annotations = Annotations.from_columns(item, annotator, label, time=[4, 3, 2, 1])
    part = annotations.subset(items=["a"], annotators=["x"])
    assert (part.items.tolist(), part.annotators.tolist()) == (["a"], ["x"])
    assert part.classes.tolist() == ["cat", "dog"]
    assert sorted(part.columns["time"].tolist()) == [1, 4]
    assert annotations.subset(classes=np.array([False, True])).classes.tolist() == ["dog"]
    assert annotations.subset() == annotations
    with pytest.raises(DataError, match="no item 'z'; there are a, b"):
        annotations.subset(items=["z"])


def test_carried_columns_follow_their_rows():
    item, annotator, label = zip(*ROWS, strict=True)
    annotations = Annotations.from_columns(
        item, annotator, label, note=["1st", "2nd", "3rd", "4th"]
    )
    rows = zip(
        annotations.items[annotations.item],
        annotations.annotators[annotations.annotator],
        annotations.columns["note"],
        strict=True,
    )
    assert sorted(rows) == [
        ("a", "x", "1st"),
        ("a", "x", "4th"),
        ("a", "y", "3rd"),
        ("b", "x", "2nd"),
    ]


def test_nothing_can_be_changed_and_the_callers_arrays_stay_theirs():
    item = np.array([0, 1], dtype=np.uint8)
    annotations = Annotations.from_codes(item, item, item, items=2, annotators=2, classes=2)
    for array in (annotations.annotator, annotations.label, annotations.index, annotations.items):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    item[0] = 0
    with pytest.raises(AttributeError):
        annotations.label = item


def test_pickling_keeps_everything():
    annotations = relation(ROWS)
    assert pickle.loads(pickle.dumps(annotations)) == annotations


def test_repr_says_what_is_inside():
    assert (
        repr(relation(ROWS))
        == "<Annotations: 4 labels by 2 annotators on 2 items; classes cat, dog>"
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            (["a"], ["x", "y"], ["1", "2"]),
            "columns of different length: item 1, annotator 2, label 2",
        ),
        ((["a", None], ["x", "y"], ["1", "2"]), "row 2: no item"),
        ((["a", "b"], ["x", ""], ["1", "2"]), "row 2: no annotator"),
        (
            (["a", "b", "c"], "xyz", ["1", float("nan"), None]),
            "row 2: no label; 1 more row like this",
        ),
        ((["a\ud800"], ["x"], ["1"]), "is not valid text"),
    ],
)
def test_bad_columns_are_refused(columns, message):
    with pytest.raises(DataError, match=message):
        Annotations.from_columns(*columns)


def test_labels_outside_the_declared_classes_are_refused():
    with pytest.raises(DataError, match="label 'dog' is not among the classes cat, fox"):
        relation(ROWS, classes=["cat", "fox"])


def test_numbers_are_sorted_and_compared_like_labels():
    one = Numbers.from_columns("ab", "xy", [2.5, -1])
    other = Numbers.from_columns("ba", "yx", [-1, 2.5])
    assert one == other
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(DataError, match="row 1: nan is not a number"):
        Numbers.from_columns("a", "x", [float("nan")])


def test_parts_cover_all_items_whatever_the_cut():
    annotations = relation(ROWS)
    whole = annotations.part(0, 2).labels.toarray()
    pieces = [part.labels.toarray() for part in annotations.parts([(0, 1), (1, 2)])]
    assert np.array_equal(np.vstack(pieces), whole)


def test_texts_with_one_hash_keep_codes_of_their_own(monkeypatch):
    column = pl.Series(["b", "a", "b", "c"])
    honest = pl.Series.hash

    def hash_of(series, seed=0):
        return honest(series, seed) * 0 if seed < 2 else honest(series, seed)

    monkeypatch.setattr(pl.Series, "hash", hash_of)
    codes, names = code_texts(column)
    assert (codes.tolist(), names.tolist()) == ([1, 0, 1, 2], ["a", "b", "c"])


def test_hashes_that_begin_alike_are_different():
    hashes = np.array([5, 6, 5, 7, 2**63 + 5, 6], dtype=np.uint64)
    same = rows_of_hash(hashes)
    assert (hashes[same] == hashes).all()
    assert len(set(same.tolist())) == 4
