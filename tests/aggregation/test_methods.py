"""What every registered method promises."""

import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import get_args, get_origin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import Aggregation, Annotations, aggregate, aggregators, simulate
from dissensus.base.engine import Local
from dissensus.params import describe_fields
from dissensus.result import pack_params

from ..support import annotation_rows, relation, rows_of, run

METHODS = list(aggregators)
each_method = pytest.mark.parametrize("name", METHODS)
close = {"rtol": 1e-9, "atol": 1e-9}


def n_classes(name: str) -> int:
    """Return how many classes to try a method on: three, where it can choose between so many."""
    return min(3, aggregators.find(name).max_classes or 3)


def abstains(name: str) -> bool:
    """Return whether a method may leave an item undecided that has labels."""
    return getattr(aggregators.find(name), "abstains", False)


def within(name: str, rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return rows with no more classes than a method can choose between."""
    return [(item, who, str(min(int(label), n_classes(name) - 1))) for item, who, label in rows]


def crowd(name: str, seed: int = 3) -> Annotations:
    return simulated(n_classes(name), seed)


@cache
def simulated(classes: int, seed: int) -> Annotations:
    sizes = {"n_items": 120, "n_annotators": 12, "n_classes": classes, "feedback": 5}
    return simulate("independent-confusion", **sizes, seed=seed).annotations


@cache
def fitted(name: str) -> Aggregation:
    return aggregate(crowd(name), name)


@cache
def many_labels(votes: int) -> Annotations:
    rows = [("many", f"w{who}", "1" if who % 10 < 7 else "0") for who in range(votes)]
    rows += [(f"other{i}", f"w{who}", str(i % 2)) for i in range(4) for who in range(min(votes, 5))]
    return relation(rows)


@each_method
@given(rows=annotation_rows())
def test_posteriors_are_distributions_and_labels_are_their_best_classes(name, rows):
    result = aggregate(relation(within(name, rows)), name)
    assert np.isfinite(result.posterior).all()
    assert (result.posterior >= 0).all()
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(result.probabilities.sum(axis=1), 1, atol=1e-12)
    identifiable = result.is_identifiable & (result.label >= 0)
    best = result.probabilities.max(axis=1)[identifiable]
    assert (result.confidence[identifiable] >= best - 1e-9).all()
    assert np.isnan(result.confidence[~result.is_identifiable]).all()


@each_method
@given(rows=annotation_rows(), order=st.randoms())
def test_the_order_of_rows_does_not_matter(name, rows, order):
    rows = within(name, rows)
    shuffled = rows.copy()
    order.shuffle(shuffled)
    there, back = aggregate(relation(rows), name), aggregate(relation(shuffled), name)
    np.testing.assert_array_equal(there.posterior, back.posterior)
    assert there.labels.tolist() == back.labels.tolist()


@pytest.mark.numeric
@each_method
def test_names_do_not_matter(name):
    annotations = crowd(name)
    there = aggregate(annotations, name)
    new = {
        "items": annotations.items[::-1],
        "annotators": annotations.annotators[::-1],
        "classes": annotations.classes[::-1],
    }
    swapped = Annotations.from_codes(
        annotations.n_items - 1 - annotations.item.astype(int),
        annotations.n_annotators - 1 - annotations.annotator.astype(int),
        annotations.n_classes - 1 - annotations.label.astype(int),
        **new,
    )
    back = aggregate(swapped, name)
    np.testing.assert_allclose(there.posterior, back.posterior[::-1, ::-1], **close)
    np.testing.assert_allclose(there.quality, back.quality[::-1], **close)


@each_method
def test_labels_called_like_our_own_columns_are_fine(name):
    rows = [(item, who, "task" if item == who else "worker") for item in "abc" for who in "abc"]
    plain = [(item, who, "0" if item == who else "1") for item in "abc" for who in "abc"]
    np.testing.assert_array_equal(
        aggregate(relation(rows), name).posterior, aggregate(relation(plain), name).posterior
    )


@dataclass(frozen=True)
class Elsewhere(Local):
    """An engine that sends everything through bytes, as other machines would."""

    def each(self, work, parts):
        for part in parts:
            there = pickle.loads(pickle.dumps((work, part)))
            yield pickle.loads(pickle.dumps(there[0](there[1])))


@each_method
@pytest.mark.parametrize(
    "engine",
    [
        Local(threads=1, parts=1),
        pytest.param(Local(threads=1, parts=7), marks=pytest.mark.numeric),
        Local(threads=2, parts=2),
        Local(3, 40),
        Elsewhere(parts=3),
    ],
)
def test_parts_threads_and_engines_do_not_matter(name, engine):
    here, there = fitted(name), aggregate(crowd(name), name, engine=engine)
    np.testing.assert_allclose(here.posterior, there.posterior, **close)
    np.testing.assert_allclose(here.quality, there.quality, **close)
    np.testing.assert_allclose(here.trace, there.trace, rtol=1e-9)
    assert here.labels.tolist() == there.labels.tolist()


@each_method
@given(
    rows=annotation_rows(), truth=st.dictionaries(st.sampled_from("abcde"), st.sampled_from("012"))
)
def test_gold_is_kept(name, rows, truth):
    classes = "012"[: n_classes(name)]
    truth = {item: min(label, classes[-1]) for item, label in truth.items()}
    annotations = relation(within(name, rows), classes=classes, items="abcde")
    result = aggregate(annotations, name, gold=truth)
    found = dict(zip(result.annotations.items.tolist(), result.labels.tolist(), strict=True))
    for item, label in truth.items():
        assert found[item] == label
        position = annotations.items.tolist().index(item)
        assert result.posterior[position].tolist() == [float(label == one) for one in classes]


@each_method
@given(rows=annotation_rows())
def test_the_objective_never_falls(name, rows):
    trace = np.array(aggregate(relation(within(name, rows)), name).trace)
    assert (np.diff(trace) >= -1e-8 * np.maximum(1, np.abs(trace[1:]))).all()


@each_method
@settings(max_examples=30)
@given(data=st.data())
def test_a_specification_makes_the_method_again(name, data):
    cls = aggregators.find(name)
    drawn = {
        field.name: data.draw(setting_values(field.kind).map(as_usual), label=field.name)
        for field in describe_fields(cls)
    }
    method = cls(**drawn)
    assert aggregators.create(aggregators.describe(method)) == method


def as_usual(value):
    """Return a float that is neither so small nor so large that every method refuses it."""
    if not isinstance(value, float) or value == 0:
        return value
    return math.copysign(min(max(abs(value), 1e-30), 1e30), value)


def setting_values(kind):
    """Draw values that a setting's own limits allow."""
    for option in get_args(kind):
        if get_origin(option) is Mapping:
            numbers = st.floats(allow_nan=False, allow_infinity=False)
            values = numbers if get_args(option)[1] is float else st.text()
            return st.none() | st.dictionaries(st.text(), values)
    values = st.from_type(kind)
    return values.filter(lambda value: not isinstance(value, float) or np.isfinite(value))


@each_method
@pytest.mark.parametrize("votes", [1, 1500, 100_000])
def test_any_number_of_labels_on_one_item(name, votes):
    result = aggregate(many_labels(votes), name)
    assert np.isfinite(result.posterior).all()
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1, atol=1e-12)
    position = result.annotations.items.tolist().index("many")
    assert result.labels[position] == "1" or (abstains(name) and result.label[position] == -1)


@each_method
@pytest.mark.parametrize(
    "rows",
    [
        [("a", "x", "0")],
        [(item, "x", label) for item, label in zip("abcd", "0110", strict=True)],
        [("a", who, "0") for who in "xyz"],
        [(item, who, "0") for item in "abc" for who in "xyz"],
        [("a", "x", "0"), ("a", "y", "1"), ("b", "v", "1"), ("b", "w", "1")],
    ],
    ids=["one label", "one annotator", "one item", "one class", "two groups that never met"],
)
def test_small_and_degenerate_data(name, rows):
    result = aggregate(relation(rows), name)
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1)
    by_item = dict(zip(result.annotations.items.tolist(), result.labels.tolist(), strict=True))
    for item, label in by_item.items():
        named = {annotations for position, _, annotations in rows if position == item}
        assert label in named or (abstains(name) and label is None)
    assert ((result.quality >= 0) & (result.quality <= 1)).all()


@each_method
def test_items_annotators_and_classes_that_nobody_used(name):
    rows = [(item, who, "0" if item < "d" else "1") for item in "abcdef" for who in "wxy"]
    classes = "0123" if n_classes(name) == 3 else "01"
    annotations = relation(rows, items="abcdefg", annotators="wxyz", classes=classes)
    result = aggregate(annotations, name)
    assert result.labels.tolist() == ["0", "0", "0", "1", "1", "1", None]
    assert np.isfinite(result.posterior).all()
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1)
    assert result.annotators["n_labels"].tolist() == [6, 6, 6, 0]


@each_method
def test_empty_items_change_nothing_for_the_others(name):
    annotations = crowd(name)
    more = Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        annotations.label,
        items=annotations.n_items + 5,
        annotators=annotations.annotators,
        classes=annotations.classes,
    )
    without, beside = aggregate(annotations, name), aggregate(more, name)
    np.testing.assert_allclose(without.posterior, beside.posterior[: annotations.n_items], **close)
    np.testing.assert_allclose(without.trace, beside.trace, rtol=1e-9)


@each_method
def test_a_result_is_saved_and_loaded(name, tmp_path):
    result = aggregate(crowd(name), name)
    result.save(tmp_path / "kept")
    again = Aggregation.load(tmp_path / "kept")
    assert again.method == result.method
    assert again.labels.tolist() == result.labels.tolist()
    assert again.trace == result.trace
    assert again.converged == result.converged
    assert again.annotations == result.annotations
    for table in ("items", "annotators"):
        there, back = getattr(result, table), getattr(again, table)
        assert there.keys() == back.keys()
        for column in there:
            np.testing.assert_array_equal(there[column], back[column])
    np.testing.assert_array_equal(again.posterior, result.posterior)
    assert type(again.params) is type(result.params)
    kept, was = pack_params(again.params), pack_params(result.params)
    assert kept.keys() == was.keys()
    for part in was:
        np.testing.assert_array_equal(kept[part], was[part])


@each_method
def test_a_known_crowd_labels_other_items(name):
    made = simulate(
        "one-coin", n_items=400, n_annotators=12, n_classes=n_classes(name), feedback=5, seed=3
    )
    known = aggregate(made.annotations.subset(items=made.annotations.items[:300]), name)
    others = made.annotations.subset(items=made.annotations.items[300:])
    found = known.predict(others)
    assert found.annotations.items.tolist() == others.items.tolist()
    decided = (found.label >= 0) | (not abstains(name))
    assert np.mean(found.label[decided] == made.truth[300:][decided]) > 0.7
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1)


@each_method
def test_an_annotator_nobody_knows_counts_as_an_average_one(name):
    annotations = crowd(name)
    known = aggregate(annotations, name)
    rows = [("new", who, "1") for who in ("0", "1", "stranger")]
    found = known.predict(relation(rows))
    assert np.isfinite(found.posterior).all()
    assert found.labels.tolist() == ["1"]


@each_method
def test_an_update_is_a_fit_to_everything(name):
    annotations = simulate(
        "one-coin", n_items=150, n_annotators=10, n_classes=n_classes(name), feedback=7
    ).annotations
    first = annotations.subset(items=annotations.items[:100], annotators=annotations.annotators[:8])
    rest = relation([row for row in rows_of(annotations) if row not in set(rows_of(first))])
    assert first.merge(rest) == annotations
    there, back = aggregate(annotations, name), aggregate(first, name).update(rest)
    assert back.annotations == annotations
    np.testing.assert_allclose(back.posterior, there.posterior, atol=0.02)


@each_method
def test_the_command_runs_it(name, tmp_path):
    (tmp_path / "answers.csv").write_text("task,worker,label\na,x,0\na,y,0\nb,x,1\nb,y,1\n")
    done = run("aggregate", "answers.csv", "-s", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = aggregate(
        relation([("a", "x", "0"), ("a", "y", "0"), ("b", "x", "1"), ("b", "y", "1")]), name
    )
    lines = [*result.notes, " ".join(result.unidentifiable)]  # two annotators show nothing
    assert done.stderr.decode() == "".join(f"{sentence}\n" for sentence in lines)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "item,label,confidence,p:0,p:1"
    found = [line.split(",")[:2] for line in lines[1:]]
    assert found == [["a", "0"], ["b", "1"]] or (abstains(name) and found == [["a", ""], ["b", ""]])


@each_method
def test_it_says_what_it_is(name):
    cls = aggregators.find(name)
    assert cls.__module__.rpartition(".")[2].replace("_", "-") == name
    assert cls.__doc__
    for field in describe_fields(cls):
        assert field.doc, f"{name} does not explain {field.name}"
