"""What methods for classes and formats promise, as tests that anybody can run on their own.

    pytest --pyargs dissensus.conformance --method mine
    pytest --pyargs dissensus.conformance --format mine --file example.mine

`mine` is registered: an entry point of the group `dissensus.methods` or `dissensus.formats`, or one
of ours. Without a name, all are tried. A format is tried on what it writes itself, and on the files
that are given. Needs pytest and Hypothesis. This module is a plugin of pytest, which adds the
options, and it holds the tests, so at its top it imports pytest alone.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

import pytest

if TYPE_CHECKING:
    from .aggregation.aggregation import ClassAggregation
    from .answers.annotations import Annotations
    from .base.engine import Local
    from .registry import Registry

Row = tuple[str, str, str]  # item, annotator, label

_ENGINES = {  # threads and parts; parts sent through bytes
    "one": (1, 1, False),
    "seven parts": (1, 7, False),
    "two threads": (2, 2, False),
    "forty parts": (3, 40, False),
    "elsewhere": (None, 3, True),
}
_SMALL: dict[str, list[Row]] = {
    "one label": [("a", "x", "0")],
    "one annotator": [(i, "x", label) for i, label in zip("abcd", "0110", strict=True)],
    "one item": [("a", who, "0") for who in "xyz"],
    "one class": [(item, who, "0") for item in "abc" for who in "xyz"],
    "two groups that never met": [
        *(("a", "x", "0"), ("a", "y", "1")),
        *(("b", "v", "1"), ("b", "w", "1")),
    ],
}


def pytest_addoption(parser: Any) -> None:
    """Add the options that name methods and formats."""
    group = parser.getgroup("dissensus")
    group.addoption("--method", action="append", default=[], help="registered method to try")
    group.addoption("--format", action="append", default=[], help="registered format to try")
    group.addoption("--file", action="append", default=[], help="a file of that format")


def pytest_configure(config: Any) -> None:
    """Name the methods to try, and the mark of tests that depend on how a processor rounds."""
    config.pluginmanager.register(Promises(), "dissensus.promises")
    config.addinivalue_line("markers", "numeric: depends on how a processor rounds")


class Promises:
    """The part of the plugin that a module of tests does not have: it names what to try."""

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Run promises for every method or format that is named, or for all."""
        if metafunc.function.__module__ != __name__:
            return
        from .formats.format import TARGETS, TOOLS
        from .registry import aggregators

        option = metafunc.config.getoption
        is_chosen = option("--method") or option("--format")
        if "name" in metafunc.fixturenames:
            names = option("--method") or ([] if is_chosen else list(aggregators))
            for name in names:
                _check(aggregators, name)
            metafunc.parametrize("name", names)
        elif "format_name" in metafunc.fixturenames:
            every = TOOLS if "example_files" in metafunc.fixturenames else TARGETS
            names = option("--format") or ([] if is_chosen else list(every))
            metafunc.parametrize("format_name", names)


def _check(registry: Registry[Any], name: str) -> None:
    """Refuse a name that no method has, in a line."""
    from .errors import MethodError

    try:
        registry.resolve(name)
    except MethodError as problem:
        raise pytest.UsageError(str(problem)) from None


# Small data


def relation(rows: Sequence[Row], **declared: Any) -> Annotations:
    """Return annotations from rows."""
    from .answers.annotations import Annotations

    item, annotator, label = zip(*rows, strict=True)
    return Annotations.from_columns(item, annotator, label, **declared)


def rows_of(annotations: Annotations) -> list[Row]:
    """Return item, annotator and label of every annotation, by name."""
    columns = (
        annotations.items[annotations.item],
        annotations.annotators[annotations.annotator],
        annotations.classes[annotations.label],
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def few_classes(name: str) -> int:
    """Return how many classes to try a method on: three, where it can choose between so many."""
    from .registry import aggregators

    return min(3, aggregators.find(name).max_classes or 3)


def abstains(name: str) -> bool:
    """Return whether a method may leave an item undecided that has labels."""
    from .registry import aggregators

    return aggregators.find(name).abstains


def within(name: str, rows: Iterable[Row]) -> list[Row]:
    """Return rows with no more classes than a method can choose between."""
    most = few_classes(name) - 1
    return [(item, who, str(min(int(label), most))) for item, who, label in rows]


def any_rows() -> Any:
    """Draw rows, repeats included."""
    from hypothesis import strategies as st

    row = st.tuples(st.sampled_from("abcde"), st.sampled_from("vwxyz"), st.sampled_from("012"))
    return st.lists(row, min_size=1, max_size=30)


def _given(
    max_examples: int = 100, **strategies: Any
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    from hypothesis import given, settings

    def decorated(promise: Callable[..., None]) -> Callable[[], None]:
        return settings(deadline=None, max_examples=max_examples)(given(**strategies)(promise))

    return decorated


def crowd(name: str) -> Annotations:
    """Return simulated annotations with as many classes as a method can choose between."""
    return _simulated(few_classes(name))


@cache
def _simulated(n_classes: int) -> Annotations:
    return _simulate("independent-confusion", n_classes, n_items=120, seed=3).annotations


def _simulate(strategy: str, n_classes: int, **sizes: Any) -> Any:
    from .datasets.simulation import simulate

    usual = {"n_annotators": 12, "feedback": 5}
    return simulate(strategy, n_classes=n_classes, **(usual | sizes))


@cache
def _fitted(name: str) -> ClassAggregation:
    return _aggregate(crowd(name), name)


@cache
def _many_labels(votes: int) -> Annotations:
    rows = [("many", f"w{who}", "1" if who % 10 < 7 else "0") for who in range(votes)]
    rows += [(f"other{i}", f"w{who}", str(i % 2)) for i in range(4) for who in range(min(votes, 5))]
    return relation(rows)


def _aggregate(annotations: Annotations, name: str, **context: Any) -> ClassAggregation:
    from .aggregation import aggregate

    return aggregate(annotations, name, **context)


def _engine(threads: int | None, parts: int, in_bytes: bool) -> Local:
    from .base.engine import Local

    class Elsewhere(Local):
        """An engine that sends everything through bytes, as other machines would."""

        def each(self, work: Any, parts: Any) -> Any:
            for part in parts:
                there = pickle.loads(pickle.dumps((work, part)))
                yield pickle.loads(pickle.dumps(there[0](there[1])))

    return Elsewhere(parts=parts) if in_bytes else Local(threads, parts)


def _assert_distributions(probabilities: Any) -> None:
    import numpy as np

    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)


def _assert_close(there: Any, back: Any) -> None:
    import numpy as np

    np.testing.assert_allclose(there, back, rtol=1e-9, atol=1e-9)


# What comes out


def test_posteriors_are_distributions_and_labels_are_their_best_classes(name: str) -> None:
    import numpy as np

    @_given(rows=any_rows())
    def holds(rows: list[Row]) -> None:
        result = _aggregate(relation(within(name, rows)), name)
        _assert_distributions(result.posterior)
        _assert_distributions(result.probabilities)
        decided = result.is_identifiable & (result.label >= 0)
        best = result.probabilities.max(axis=1)[decided]
        assert (result.confidence[decided] >= best - 1e-9).all()
        assert np.isnan(result.confidence[~result.is_identifiable]).all()

    holds()


def test_the_objective_never_falls(name: str) -> None:
    import numpy as np

    @_given(rows=any_rows())
    def holds(rows: list[Row]) -> None:
        trace = np.array(_aggregate(relation(within(name, rows)), name).trace)
        assert (np.diff(trace) >= -1e-8 * np.maximum(1, np.abs(trace[1:]))).all()

    holds()


def test_gold_is_kept(name: str) -> None:
    from hypothesis import strategies as st

    classes = "012"[: few_classes(name)]

    @_given(
        rows=any_rows(), truth=st.dictionaries(st.sampled_from("abcde"), st.sampled_from("012"))
    )
    def holds(rows: list[Row], truth: dict[str, str]) -> None:
        gold = {item: min(label, classes[-1]) for item, label in truth.items()}
        annotations = relation(within(name, rows), classes=classes, items="abcde")
        result = _aggregate(annotations, name, gold=gold)
        items = result.answers.items.tolist()
        for item, label in gold.items():
            assert result.labels[items.index(item)] == label
            certain = [float(label == known) for known in classes]
            assert result.posterior[items.index(item)].tolist() == certain

    holds()


# What does not matter


def test_the_order_of_rows_does_not_matter(name: str) -> None:
    import numpy as np
    from hypothesis import strategies as st

    @_given(rows=any_rows(), order=st.randoms())
    def holds(rows: list[Row], order: Any) -> None:
        rows = within(name, rows)
        shuffled = rows.copy()
        order.shuffle(shuffled)
        there, back = _aggregate(relation(rows), name), _aggregate(relation(shuffled), name)
        np.testing.assert_array_equal(there.posterior, back.posterior)
        assert there.labels.tolist() == back.labels.tolist()

    holds()


@pytest.mark.numeric
def test_names_do_not_matter(name: str) -> None:
    import numpy as np

    from .answers.annotations import Annotations

    annotations = crowd(name)
    there = _aggregate(annotations, name)
    swapped = Annotations.from_codes(
        annotations.n_items - 1 - annotations.item.astype(int),
        annotations.n_annotators - 1 - annotations.annotator.astype(int),
        annotations.n_classes - 1 - annotations.label.astype(int),
        items=annotations.items[::-1],
        annotators=annotations.annotators[::-1],
        classes=annotations.classes[::-1],
    )
    back = _aggregate(swapped, name)
    np.testing.assert_allclose(there.posterior, back.posterior[::-1, ::-1])
    _assert_close(there.quality, back.quality[::-1])


def test_labels_called_like_our_own_columns_are_fine(name: str) -> None:
    import numpy as np

    rows = [(item, who, "task" if item == who else "worker") for item in "abc" for who in "abc"]
    plain = [(item, who, "0" if item == who else "1") for item in "abc" for who in "abc"]
    np.testing.assert_array_equal(
        _aggregate(relation(rows), name).posterior, _aggregate(relation(plain), name).posterior
    )


@pytest.mark.parametrize(
    "engine",
    [pytest.param(e, marks=pytest.mark.numeric if e == "seven parts" else ()) for e in _ENGINES],
)
def test_parts_threads_and_engines_do_not_matter(name: str, engine: str) -> None:
    import numpy as np

    here = _fitted(name)
    there = _aggregate(crowd(name), name, engine=_engine(*_ENGINES[engine]))
    _assert_close(here.posterior, there.posterior)
    _assert_close(here.quality, there.quality)
    np.testing.assert_allclose(here.trace, there.trace, rtol=1e-9)
    assert here.labels.tolist() == there.labels.tolist()


# Odd data


@pytest.mark.parametrize("votes", [1, 1500, 100_000])
def test_any_number_of_labels_on_one_item(name: str, votes: int) -> None:
    result = _aggregate(_many_labels(votes), name)
    _assert_distributions(result.posterior)
    position = result.answers.items.tolist().index("many")
    assert result.labels[position] == "1" or (abstains(name) and result.label[position] == -1)


@pytest.mark.parametrize("case", _SMALL)
def test_small_and_degenerate_data(name: str, case: str) -> None:
    rows = _SMALL[case]
    result = _aggregate(relation(rows), name)
    _assert_distributions(result.posterior)
    labels = dict(zip(result.answers.items.tolist(), result.labels.tolist(), strict=True))
    for item, label in labels.items():
        named = {answer for position, _, answer in rows if position == item}
        assert label in named or (abstains(name) and label is None)
    assert ((result.quality >= 0) & (result.quality <= 1)).all()


def test_items_annotators_and_classes_that_nobody_used(name: str) -> None:
    rows = [(item, who, "0" if item < "d" else "1") for item in "abcdef" for who in "wxy"]
    classes = "0123" if few_classes(name) == 3 else "01"
    annotations = relation(rows, items="abcdefg", annotators="wxyz", classes=classes)
    result = _aggregate(annotations, name)
    assert result.labels.tolist() == ["0", "0", "0", "1", "1", "1", None]
    _assert_distributions(result.posterior)
    assert result.annotators["n_labels"].tolist() == [6, 6, 6, 0]


def test_empty_items_change_nothing_for_the_others(name: str) -> None:
    import numpy as np

    from .answers.annotations import Annotations

    annotations = crowd(name)
    more = Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        annotations.label,
        items=annotations.n_items + 5,
        annotators=annotations.annotators,
        classes=annotations.classes,
    )
    without, beside = _aggregate(annotations, name), _aggregate(more, name)
    np.testing.assert_allclose(without.posterior, beside.posterior[: annotations.n_items])
    np.testing.assert_allclose(without.trace, beside.trace, rtol=1e-9)


# What a result is good for


def test_a_result_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    import numpy as np

    from .aggregation.aggregation import ClassAggregation, pack_params

    result = _aggregate(crowd(name), name)
    result.save(tmp_path / "saved")
    again = ClassAggregation.load(tmp_path / "saved")
    assert again.method == result.method
    assert again.labels.tolist() == result.labels.tolist()
    assert again.trace == result.trace
    assert again.converged == result.converged
    assert again.answers == result.answers
    for table in ("items", "annotators"):
        there, back = getattr(result, table), getattr(again, table)
        assert there.keys() == back.keys()
        for column in there:
            np.testing.assert_array_equal(there[column], back[column])
    np.testing.assert_array_equal(again.posterior, result.posterior)
    assert type(again.params) is type(result.params)
    loaded, saved = pack_params(again.params), pack_params(result.params)
    assert loaded.keys() == saved.keys()
    for part in saved:
        np.testing.assert_array_equal(loaded[part], saved[part])


def test_a_known_crowd_labels_other_items(name: str) -> None:
    import numpy as np

    simulated = _simulate("one-coin", few_classes(name), n_items=400, seed=3)
    annotations = simulated.annotations
    fitted = _aggregate(annotations.subset(items=annotations.items[:300]), name)
    others = annotations.subset(items=annotations.items[300:])
    predicted = fitted.predict(others)
    assert predicted.answers.items.tolist() == others.items.tolist()
    decided = (predicted.label >= 0) | (not abstains(name))
    assert np.mean(predicted.label[decided] == simulated.truth[300:][decided]) > 0.7
    _assert_distributions(predicted.posterior)


def test_an_annotator_nobody_knows_counts_as_an_average_one(name: str) -> None:
    import numpy as np

    rows = [("new", who, "1") for who in ("0", "1", "stranger")]
    predicted = _aggregate(crowd(name), name).predict(relation(rows))
    assert np.isfinite(predicted.posterior).all()
    assert predicted.labels.tolist() == ["1"]


def test_an_update_is_a_fit_to_everything(name: str) -> None:
    import numpy as np

    sizes = {"n_items": 150, "n_annotators": 10, "feedback": 7}
    annotations = _simulate("one-coin", few_classes(name), **sizes).annotations
    begin = annotations.subset(items=annotations.items[:100], annotators=annotations.annotators[:8])
    begun = set(rows_of(begin))
    rest = relation([row for row in rows_of(annotations) if row not in begun])
    assert begin.merge(rest) == annotations
    there, back = _aggregate(annotations, name), _aggregate(begin, name).update(rest)
    assert back.answers == annotations
    np.testing.assert_allclose(back.posterior, there.posterior, atol=0.02)


# What it says of itself


def test_a_specification_makes_the_method_again(name: str) -> None:
    from hypothesis import strategies as st

    from .params import describe_fields
    from .registry import aggregators

    cls = aggregators.find(name)

    @_given(max_examples=30, data=st.data())
    def holds(data: Any) -> None:
        values = {
            field.name: data.draw(_setting_values(field.kind).map(_as_usual), label=field.name)
            for field in describe_fields(cls)
        }
        method = cls(**values)
        assert aggregators.create(aggregators.describe(method)) == method

    holds()


def test_settings_are_explained(name: str) -> None:
    from .params import describe_fields
    from .registry import aggregators

    cls = aggregators.find(name)
    assert cls.__doc__
    for field in describe_fields(cls):
        assert field.doc, f"{name} does not explain {field.name}"


def _as_usual(value: Any) -> Any:
    """Return a float that is neither so small nor so large that every method refuses it."""
    if not isinstance(value, float) or value == 0:
        return value
    return math.copysign(min(max(abs(value), 1e-30), 1e30), value)


def _setting_values(kind: Any) -> Any:
    """Draw values that a setting's own limits allow."""
    from hypothesis import strategies as st

    for option in get_args(kind):
        if get_origin(option) is Mapping:
            numbers = st.floats(allow_nan=False, allow_infinity=False)
            values = numbers if get_args(option)[1] is float else st.text()
            return st.none() | st.dictionaries(st.text(), values)
    return st.from_type(kind).filter(
        lambda value: not isinstance(value, float) or math.isfinite(value)
    )


__all__ = ["abstains", "few_classes", "relation", "rows_of", "within"]
__all__ += [name for name in list(globals()) if name.startswith("test_")]


# What formats promise


@pytest.fixture
def example_files(request: pytest.FixtureRequest, format_name: str, tmp_path: Path) -> list[Path]:
    """Return files of a format: those that are given, and one that it writes itself."""
    from .formats.format import TARGETS, formats

    files = [Path(file) for file in request.config.getoption("--file")]
    if formats[format_name].read is not None and format_name in TARGETS:
        files.append(_written(format_name, TARGETS[format_name].kinds[0], tmp_path))
    if not files:
        pytest.skip(f"no file of {format_name} to read: name one with --file")
    return files


def _labels() -> Annotations:
    return relation([(f"i{item}", f"w{who}", "ab"[item % 2]) for item in range(6) for who in "123"])


def _written(format_name: str, kind: str, folder: Path) -> Path:
    """Return a file that a format has written, or its folder."""
    from .formats.writing import write

    path = folder / ("written" if kind == "folder" else f"written.{kind}")
    write(_labels(), path, format=format_name)
    return path


def test_a_file_is_recognised_by_its_content(
    format_name: str, example_files: list[Path], tmp_path: Path
) -> None:
    from .formats.format import head_of, tool_of
    from .formats.sources import open_source

    for number, file in enumerate(example_files):
        renamed = tmp_path / f"file{number}"
        renamed.write_bytes(file.read_bytes())
        head = head_of(open_source(renamed))
        assert head is not None
        assert tool_of(head) == format_name


def test_answers_have_items_annotators_and_values_of_the_kinds_that_are_named(
    format_name: str, example_files: list[Path]
) -> None:
    from .formats.format import TOOLS, formats
    from .formats.sources import open_source

    for file in example_files:
        questions = TOOLS[format_name](open_source(file)).questions
        assert questions
        for question in questions.values():
            assert question.kind in ("single", "ordinal", "numeric", *formats[format_name].kinds)
            assert len(question.contents()) == question.answers.height


def test_labels_go_there_and_back(format_name: str, tmp_path: Path) -> None:
    from .formats.format import TARGETS
    from .formats.reading import examine

    if format_name not in TARGETS:
        pytest.skip("labels are not written")
    for kind in TARGETS[format_name].kinds:
        back = examine(_written(format_name, kind, tmp_path), scale="nominal").annotations
        assert sorted(rows_of(back)) == sorted(rows_of(_labels()))


def test_a_damaged_file_is_read_or_ends_in_one_clear_error(
    format_name: str, example_files: list[Path], tmp_path: Path
) -> None:
    from .errors import DissensusError
    from .formats import examine

    damaged, problems = tmp_path / "damaged", []
    for file in example_files:
        body = file.read_bytes()
        places = range(0, len(body), len(body) // 12 + 1)
        cuts = [body[:at] for at in places]
        swaps = [body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :] for at in places]
        for content in (b"\0", *cuts, *swaps, body + body):
            damaged.write_bytes(content)
            try:
                examine(damaged, format=format_name)
            except DissensusError as problem:
                problems.append(str(problem))
    assert all(len(problem.splitlines()) == 1 for problem in problems)
    assert all(str(damaged) in problem for problem in problems)
