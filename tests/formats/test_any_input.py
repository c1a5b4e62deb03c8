"""Every function of the package takes annotations and truth in whatever form people have them."""

import inspect

import numpy as np
import polars as pl
import pytest

import dissensus as ds

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

CROWD = ds.simulate("hammer-spammer", n_items=30, n_annotators=5, n_classes=3, seed=1)
TABLE = pd.DataFrame(
    [
        {"item": item, "annotator": annotator, "label": label}
        for item, labels in CROWD.annotations.to_dict().items()
        for annotator, label in labels.items()
    ]
)
ANNOTATIONS = ds.Annotations.from_columns(*(TABLE[name].tolist() for name in TABLE))
NUMBERS = ds.Numbers.from_columns(*(TABLE[name].astype(float) for name in TABLE))
TRUTH = pd.Series(CROWD.truths).rename_axis("photo").rename("species")  # names that nobody knows
PROBABILITIES = np.full((30, 3), 1 / 3)


def path_of(frame, folder):
    frame.to_csv(folder / "file.csv", index=False)
    return folder / "file.csv"


KINDS = {
    "Annotations": lambda _folder: ANNOTATIONS,
    "path": lambda folder: path_of(TABLE, folder),
    "text of a path": lambda folder: str(path_of(TABLE, folder)),
    "pandas": lambda _folder: TABLE,
    "pandas with an index": lambda _folder: TABLE.set_index(["item", "annotator"]),
    "polars": lambda _folder: pl.DataFrame(TABLE.to_dict("list")),
    "polars, lazy": lambda _folder: pl.LazyFrame(TABLE.to_dict("list")),
    "Arrow": lambda _folder: pa.Table.from_pandas(TABLE),
    "columns": lambda _folder: TABLE.to_dict("list"),
    "nested": lambda _folder: ANNOTATIONS.to_dict(),
}
TRUTHS = {
    "path": lambda folder: path_of(TRUTH.rename_axis("item").rename("label").reset_index(), folder),
    "mapping": lambda _folder: CROWD.truths,
    "Series": lambda _folder: TRUTH,
    "pandas": lambda _folder: TRUTH.reset_index(),
    "pandas, one name known": lambda _folder: TRUTH.rename("truth").reset_index(),
    "pandas with an index": lambda _folder: TRUTH.rename_axis("item").rename("label").to_frame(),
    "polars": lambda _folder: pl.DataFrame(TRUTH.reset_index().to_dict("list")),
    "Arrow": lambda _folder: pa.Table.from_pandas(TRUTH.reset_index()),
    "columns": lambda _folder: TRUTH.reset_index().to_dict("list"),
}


def written(data, folder, **more):
    ds.write(data, folder / "out.json", format="label-studio", **more)
    return (folder / "out.json").read_text()


# Function → what it gives for some annotations, to be compared.
TAKING_ANNOTATIONS = {
    "activelab": lambda data, _: ds.activelab(data, PROBABILITIES).tolist(),
    "aggregate": lambda data, _: ds.aggregate(data).as_dict(),
    "agree": lambda data, _: ds.agree(data, resamples=20).as_dict(),
    "bootstrap": lambda data, _: ds.bootstrap(data, resamples=3).quality.tolist(),
    "check": lambda data, _: ds.check(data).findings,
    "compare": lambda data, _: ds.compare(data, folds=2).as_dict()["contested"],
    "crowdlab": lambda data, _: ds.crowdlab(data, PROBABILITIES).as_dict(),
    "identify": lambda data, _: ds.identify(data).as_dict(),
    "judge": lambda data, _: ds.judge(data, models=["4"], resamples=5).as_dict(),
    "item_scores": lambda data, _: ds.item_scores(data).as_dict(),
    "plan": lambda data, _: ds.plan(data, budget=5, draws=0).as_dict(),
    "read": lambda data, _: ds.read(data).to_dict(),
    "report": lambda data, _: ds.report(data).sentences,
    "report_groups": lambda data, _: ds.report_groups(data, data, "majority").sentences,
    "summarise": lambda data, _: ds.summarise(data, ds.aggregate(ANNOTATIONS)),
    "write": written,
    "Aggregation.predict": lambda data, _: ds.aggregate(data).predict(data).posterior.tolist(),
    "Aggregation.update": lambda data, _: ds.aggregate(data).update(data).label.tolist(),
}
RESULT, ESTIMATION = ds.aggregate(ANNOTATIONS), ds.aggregate(NUMBERS)
# Function and argument → what it gives for some truth.
TAKING_TRUTH = {
    "aggregate, gold": lambda truth, _: ds.aggregate(ANNOTATIONS, gold=truth).label.tolist(),
    "check, gold": lambda truth, _: ds.check(ANNOTATIONS, gold=truth).n_gold,
    "compare, gold": lambda truth, _: ds.compare(ANNOTATIONS, folds=2, gold=truth).verdict,
    "compare, truth": lambda truth, _: [
        one.evaluation.scores for one in ds.compare(ANNOTATIONS, folds=2, truth=truth).methods
    ],
    "estimate, gold": lambda truth, _: ds.aggregate(NUMBERS, gold=truth).value.tolist(),
    "evaluate, predicted": lambda truth, _: ds.evaluate(truth, CROWD.truths).scores["accuracy"],
    "evaluate, truth": lambda truth, _: ds.evaluate(RESULT, truth).as_dict(),
    "evaluate, truth of numbers": lambda truth, _: ds.evaluate(ESTIMATION, truth).as_dict(),
    "identify, gold": lambda truth, _: ds.identify(ANNOTATIONS, gold=truth).as_dict(),
    "judge, truth": lambda truth, _: ds.judge(
        ANNOTATIONS, models=["4"], resamples=5, truth=truth
    ).as_dict(),
    "plan, truth": lambda truth, _: (
        ds.plan(ANNOTATIONS, budget=5, draws=0, truth=truth).errors.accuracy
    ),
    "read_truth": lambda truth, _: ds.read_truth(truth),
    "report, gold": lambda truth, _: ds.report(ANNOTATIONS, gold=truth).sentences,
    "report, truth": lambda truth, _: ds.report(ANNOTATIONS, truth=truth).sentences,
    "report_groups, truth": lambda truth, _: (
        ds.report_groups(ANNOTATIONS, ANNOTATIONS, "majority", truth=truth).sentences
    ),
    "report of numbers, gold": lambda truth, _: ds.report(NUMBERS, gold=truth).sentences,
    "report of numbers, truth": lambda truth, _: ds.report(NUMBERS, truth=truth).sentences,
    "summarise, truth": lambda truth, _: ds.summarise(
        ANNOTATIONS, RESULT, truth=truth
    ).evaluation.as_dict(),
    "write, gold": lambda truth, folder: written(ANNOTATIONS, folder, gold=truth),
}
TAKING_NEITHER = {"demo", "install", "read_probabilities", "simulate", "time_limit"}


def test_every_function_that_takes_annotations_or_truth_is_walked():
    functions = {name for name in ds.__all__ if inspect.isfunction(getattr(ds, name))}
    walked = {name.partition(",")[0] for name in (*TAKING_ANNOTATIONS, *TAKING_TRUTH)}
    assert functions <= walked | TAKING_NEITHER
    for name in functions - TAKING_NEITHER:
        for known in {"gold", "truth"} & inspect.signature(getattr(ds, name)).parameters.keys():
            assert f"{name}, {known}" in TAKING_TRUTH


@pytest.mark.parametrize("name", TAKING_ANNOTATIONS)
def test_it_takes_annotations_of_every_kind(name, tmp_path):
    call = TAKING_ANNOTATIONS[name]
    expected = call(ANNOTATIONS, tmp_path)
    for kind, make in KINDS.items():
        assert repr(call(make(tmp_path), tmp_path)) == repr(expected), kind


@pytest.mark.parametrize("name", TAKING_TRUTH)
def test_it_takes_truth_of_every_kind(name, tmp_path):
    call = TAKING_TRUTH[name]
    expected = call(CROWD.truths, tmp_path)
    for kind, make in TRUTHS.items():
        assert repr(call(make(tmp_path), tmp_path)) == repr(expected), kind


@pytest.mark.parametrize("name", ["aggregate", "agree", "check", "identify", "report"])
def test_functions_for_numbers_take_numbers(name):
    assert TAKING_ANNOTATIONS[name](NUMBERS, None) is not None


def test_two_columns_of_unknown_role_are_not_guessed():
    wrong = pd.DataFrame({"annotator": ["x"], "label": ["cat"]})
    with pytest.raises(ds.DataError, match="no column for the item among 'annotator', 'label'"):
        ds.evaluate(RESULT, wrong)


def test_a_wide_table_is_read_whatever_its_index_is():
    wide = TABLE.pivot_table(index="item", columns="annotator", values="label", aggfunc="first")
    expected = ds.read(TABLE)
    assert ds.read(wide) == expected
    assert ds.read(pl.DataFrame(wide.reset_index().to_dict("list"))) == expected
    assert ds.read(wide.rename_axis(index=None)) == expected
    numbered = wide.set_axis(range(wide.shape[1]), axis=1).reset_index(drop=True)
    assert ds.read(numbered).n_annotators == expected.n_annotators


def test_lists_in_a_table_are_read_as_those_in_a_file(tmp_path):
    table = pl.DataFrame(
        {
            "id": ["a", "b", "c"],
            "annotators": [["x", "y"], ["x", "z"], ["x", "y"]],
            "labels": [["cat", "dog"], ["cat", "cat"], ["dog", "dog"]],
        }
    )
    table.write_parquet(tmp_path / "lists.parquet")
    assert ds.read(table) == ds.read(tmp_path / "lists.parquet")


def test_questions_in_a_table_are_not_mixed():
    questions = pd.concat([TABLE.assign(question="what"), TABLE.assign(question="where")])
    with pytest.raises(ds.DataError, match="several questions, what"):
        ds.read(questions)
    assert ds.read(questions, question="where") == ds.read(TABLE)


def test_objects_beside_the_labels_do_no_harm():
    assert ds.read(TABLE.assign(picture=[object() for _ in TABLE.index])) == ds.read(TABLE)


def test_one_method_can_be_compared_by_its_name():
    assert [one.method for one in ds.compare(TABLE, "majority", folds=2).methods] == ["majority"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ds.aggregate(None), "cannot read NoneType as a table; give a path"),
        (lambda: ds.aggregate(TABLE.values.tolist()), "cannot read list as a table; give a path"),
        (lambda: ds.aggregate(TABLE.head(0)), "table: no labels in it"),
        (
            lambda: ds.aggregate(TABLE.rename(columns={"item": "photo"})),
            "say which: columns={'item': '…'}",
        ),
        (
            lambda: ds.aggregate(TABLE.assign(label=TABLE["label"].where(TABLE.index > 0))),
            "row 1: no label; missing='drop' leaves such rows out",
        ),
        (lambda: ds.read(TABLE, format="exel"), "table: no format 'exel'"),
        (lambda: ds.aggregate(TABLE, None), "a method is a name or a Method, not None"),
        (lambda: ds.identify(TABLE, "wawa"), "a result is what `aggregate` returns, not str"),
    ],
)
def test_what_cannot_be_read_ends_in_a_line_for_python(call, message):
    with pytest.raises(ds.DissensusError) as problem:
        call()
    assert message in str(problem.value)


def test_a_check_of_a_table_counts_incomplete_rows():
    gaps = TABLE.assign(label=TABLE["label"].where(TABLE.index > 2))
    found = {one.code: one for one in ds.check(gaps).findings}["incomplete"]
    assert found.count == 3
    assert "missing='drop'" in found.remedy


def test_answers_of_every_kind_are_aggregated_from_tables_and_files(tmp_path):
    boxes = pd.DataFrame(
        {"item": ["a"] * 3, "annotator": ["x", "y", "z"], "x": 5, "y": [4, 5, 6], "w": 9, "h": 9}
    )
    expected = ds.aggregate(ds.read(boxes))
    assert isinstance(expected, ds.AnswerAggregation)
    for source in (boxes, pl.DataFrame(boxes.to_dict("list")), path_of(boxes, tmp_path)):
        assert ds.aggregate(source).to_pandas().equals(expected.to_pandas())
