"""The scale of labels: detected when reading, carried by annotations, used by every verb."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus import (
    Annotations,
    ClassAggregation,
    DataError,
    OptionError,
    aggregate,
    agree,
    compare,
)
from dissensus.answers.annotations import SCALES
from dissensus.formats import examine, read, read_predictions
from dissensus.formats.scales import in_a_row
from dissensus.metrics import evaluate, krippendorff_alpha
from dissensus.planning import plan
from dissensus.reporting.report import report
from dissensus.scale.fitting import Disk
from dissensus.scale.parquet_files import chunks_of
from dissensus.scale.shards import shard_rows

from ..support import annotation_rows, relation, run, shared_path

ORDINAL = ("alt_10k_prompts", "alt_summeval", "anesthesia", "lewidi_csc", "lewidi_paraphrase")
INTERVAL = ("politeness_wikipedia", "n_emotion", "nli_variation", "wordsim353", "cje_arena")
NOMINAL = (
    *("labelme", "dog", "face4", "reuters_crowd", "weather_amt", "weather_cf", "cifar10n"),
    *("s_rel", "rte", "bluebirds", "gwsd", "music"),
)  # s_rel: one of its four codes, in unknown order, is a broken link


def ratings(n_classes=5, first=1, n_items=150, n_annotators=8, seed=0, noise=0.8):
    """Return columns of labels near the grades of items, by annotators of several severities."""
    rng = np.random.default_rng(seed)
    grade = rng.uniform(0, n_classes - 1, n_items)
    item, annotator = np.divmod(np.arange(n_items * n_annotators), n_annotators)
    severity = rng.normal(0, 0.4, n_annotators)
    given = grade[item] + severity[annotator] + rng.normal(0, noise, len(item))
    label = np.clip(np.rint(given), 0, n_classes - 1).astype(int) + first
    return {"item": item, "annotator": annotator, "label": label}


def codes(n_classes=5, first=0, n_items=300, n_annotators=8, seed=0):
    """Return columns of labels whose errors may be any other class."""
    rng = np.random.default_rng(seed)
    true = rng.integers(n_classes, size=n_items)
    item, annotator = np.divmod(np.arange(n_items * n_annotators), n_annotators)
    wrong = rng.random(len(item)) < 0.4
    label = np.where(wrong, rng.integers(n_classes, size=len(item)), true[item])
    return {"item": item, "annotator": annotator, "label": label + first}


def write_table(folder, columns, name="answers.csv"):
    lines = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    body = "".join(f"{item},{annotator},{label}\n" for item, annotator, label in lines)
    (folder / name).write_text("item,annotator,label\n" + body)
    return folder / name


@pytest.mark.parametrize("name", ORDINAL)
def test_ratings_of_shared_sets_are_ordinal(name):
    reading = examine(shared_path(name) / "answers.csv.gz")
    assert reading.annotations.scale == "ordinal"
    assert any("scale='nominal'" in note for note in reading.notes)


@pytest.mark.parametrize("name", INTERVAL)
def test_sliders_of_shared_sets_are_numbers(name):
    assert read(shared_path(name) / "answers.csv.gz").scale == "interval"


@pytest.mark.parametrize("name", NOMINAL)
def test_classes_of_shared_sets_are_nominal(name):
    reading = examine(shared_path(name) / "answers.csv.gz")
    assert reading.annotations.scale == "nominal"
    assert reading.reason
    assert not reading.notes


@pytest.mark.parametrize("first", [-2, 0, 1])
@pytest.mark.parametrize("n_classes", [3, 4, 5, 7, 11])
def test_ratings_in_a_row_are_ordinal(n_classes, first):
    assert read(ratings(n_classes, first, noise=0.6)).scale == "ordinal"


@pytest.mark.parametrize("n_classes", [3, 4, 5, 8, 15])
@pytest.mark.parametrize("first", [0, 1])
def test_codes_whose_errors_have_no_order_are_nominal(n_classes, first):
    assert [read(codes(n_classes, first, seed=seed)).scale for seed in range(5)] == ["nominal"] * 5


def test_ratings_under_other_codes_are_nominal():
    columns = ratings(n_classes=5, first=0)
    mixed = np.array([3, 0, 4, 2, 1])[columns["label"]]
    assert read(columns | {"label": mixed}).scale == "nominal"


def test_numbers_that_nobody_gave_may_be_missing():
    columns = ratings(n_classes=7)
    kept = columns["label"] != 4
    assert read({name: values[kept] for name, values in columns.items()}).scale == "ordinal"
    tens = {**columns, "label": columns["label"] * 10}
    assert read(tens).scale == "ordinal"
    assert not in_a_row(np.array(["1", "2", "50"]))
    assert not in_a_row(np.array(["1", "2"]))


def test_few_disagreements_show_no_order():
    reading = examine(ratings(n_items=8, n_annotators=2))
    assert reading.annotations.scale == "nominal"
    assert "too few" in reading.reason


def test_detection_does_not_depend_on_the_order_of_rows_or_names():
    columns = ratings(n_items=120, seed=3)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(columns["label"]))
    item, annotator = rng.permutation(120), rng.permutation(8)
    renamed = {
        "item": item[columns["item"]][order],
        "annotator": annotator[columns["annotator"]][order],
        "label": columns["label"][order],
    }
    assert examine(columns).reason == examine(renamed).reason
    assert examine(renamed).annotations.scale == "ordinal"


def test_names_that_are_a_known_sequence_are_put_in_order():
    label = ["often", "Never", "sometimes", "often"]
    annotations = read({"item": [*"aabb"], "annotator": [*"xyxy"], "label": label})
    assert annotations.classes.tolist() == ["Never", "sometimes", "often"]
    assert annotations.scale == "ordinal"
    named = {"item": [*"aab"], "annotator": [*"xyx"], "label": ["low", "high", "cat"]}
    assert read(named).scale == "nominal"


def test_a_given_scale_decides(tmp_path):
    columns = ratings()
    for scale in SCALES:
        assert read(columns, scale=scale).scale == scale
    assert read(columns, scale="numeric").scale == "interval"
    assert examine(columns, scale="nominal").notes == ()
    grades = {"item": [*"aab"], "annotator": [*"xyx"], "label": ["good", "bad", "fine"]}
    ordered = read(grades, classes=["bad", "fine", "good"], scale="ordinal")
    assert (ordered.scale, ordered.classes.tolist()) == ("ordinal", ["bad", "fine", "good"])
    with pytest.raises(OptionError, match="no scale 'rising'"):
        read(columns, scale="rising")
    numbers = {"item": [*"aab"], "annotator": [*"xyx"], "label": [2, 10, 1]}
    assert read(numbers, classes=[10, 2, 1], scale="ordinal").classes.tolist() == ["1", "2", "10"]


def test_a_data_set_folder_has_classes_unless_a_scale_is_given(tmp_path):
    columns = ratings(first=0)
    answers = {}
    for item, annotator, label in zip(*(v.tolist() for v in columns.values()), strict=True):
        answers.setdefault(item, {})[annotator] = label
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    assert read(tmp_path).scale == "nominal"
    assert read(tmp_path, scale="ordinal").scale == "ordinal"


SOME = st.sampled_from(SCALES)


@given(rows=annotation_rows(classes="012"), scale=SOME)
def test_every_operation_keeps_the_scale(rows, scale):
    annotations = relation(rows, classes="012", scale=scale)
    everything = np.ones(len(annotations), dtype=bool)
    for other in (
        annotations.subset(items=annotations.items.tolist()),
        annotations.take(np.array([0, 0])),
        annotations.keep(everything),
        annotations.recode("0123"),
        annotations.with_codes(),
        annotations.merge(annotations),
        pickle.loads(pickle.dumps(annotations)),
    ):
        assert other.scale == scale
    assert pickle.loads(pickle.dumps(annotations)) == annotations
    for changed in SCALES:
        assert (annotations.with_scale(changed) == annotations) == (changed == scale)


@given(one=SOME, two=SOME)
def test_annotations_of_two_scales_are_merged_as_classes(one, two):
    both = [relation([("a", "x", "1"), ("b", "x", "2")], scale=scale) for scale in (one, two)]
    assert both[0].merge(both[1]).scale == (one if one == two else "nominal")


def test_other_names_in_order_are_merged_as_classes():
    one = relation([("a", "x", "low")], classes=["low", "high"], scale="ordinal")
    two = relation([("a", "y", "mid")], classes=["low", "mid", "high"], scale="ordinal")
    assert one.merge(two).scale == "nominal"
    numbers = [relation([("a", "x", name)], scale="ordinal") for name in "13"]
    assert numbers[0].merge(numbers[1]).scale == "ordinal"


def test_a_scale_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match="no scale 'rank'"):
        relation([("a", "x", "1")], scale="rank")


@pytest.mark.parametrize("scale", SCALES[:2])
def test_a_saved_result_has_its_scale(scale, tmp_path):
    annotations = relation([("a", "x", "1"), ("a", "y", "2")], scale=scale)
    aggregate(annotations, "majority").save(tmp_path / "kept")
    assert ClassAggregation.load(tmp_path / "kept").answers == annotations


@pytest.mark.parametrize(("columns", "scale"), [(ratings(), "ordinal"), (codes(), "nominal")])
def test_shards_have_the_scale_of_annotations_in_memory(columns, scale, tmp_path):
    from dissensus.formats.writers_init import write

    write(read(columns), tmp_path / "a.parquet")
    files = [str(tmp_path / "a.parquet")]
    engine = Disk(threads=1, folder=str(tmp_path / "work"))
    assert shard_rows(chunks_of(files), engine, n_shards=3).scale == scale
    write(read(ratings(n_classes=25), scale="nominal"), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="numbers need all annotations in memory"):
        shard_rows(chunks_of([str(tmp_path / "b.parquet")]), engine, n_shards=3)


def test_agreement_follows_the_scale():
    columns = ratings(noise=1.0)
    value = {scale: krippendorff_alpha(read(columns, scale=scale)) for scale in SCALES}
    assert value["ordinal"] > value["nominal"] + 0.2
    assert agree(columns, "alpha", resamples=0).estimates[0].value == pytest.approx(
        value["ordinal"]
    )
    found = agree(read(columns, scale="interval"), "alpha", resamples=0)
    assert (found.scale, found.estimates[0].value) == ("interval", pytest.approx(value["interval"]))
    again = agree(read(columns), "alpha", scale="nominal", resamples=0)
    assert again.estimates[0].value == pytest.approx(value["nominal"])


@pytest.mark.parametrize(
    ("name", "scale"),
    [("anesthesia", "ordinal"), ("lewidi_csc", "ordinal"), ("politeness_wikipedia", "interval")],
)
def test_agreement_of_shared_ratings_is_that_of_their_scale(name, scale):
    path = shared_path(name) / "answers.csv.gz"
    found = agree(path, "alpha", resamples=0)
    assert found.scale == scale
    nominal = agree(path, "alpha", scale="nominal", resamples=0)
    assert found.estimates[0].value > nominal.estimates[0].value + 0.1


def test_ordered_labels_are_scored_by_their_distance():
    annotations = relation(
        [("a", "x", "1"), ("b", "x", "5"), ("c", "x", "2")], classes="12345", scale="ordinal"
    )
    result = aggregate(annotations, "majority")
    truth = {"a": "2", "b": "1", "c": "2"}
    score = evaluate(result, truth, resamples=0).scores["distance"]
    assert score.value == pytest.approx((1 + 4 + 0) / 3)
    unordered = aggregate(annotations.with_scale("nominal"), "majority")
    assert "distance" not in evaluate(unordered, truth, resamples=0).scores


def test_distance_counts_steps_between_all_classes_of_labels_and_truth(tmp_path):
    (tmp_path / "labels.csv").write_text("item,label\na,10\nb,2\n")
    given_labels = read_predictions(tmp_path / "labels.csv", scale="ordinal")
    scores = evaluate(given_labels, {"a": "5", "b": "2"}, resamples=0).scores
    assert scores["distance"].value == 0.5  # 2, 5, 10: from 10 to 5 is one step


def test_functions_of_every_kind_take_numbers():
    numbers = read(ratings(n_classes=25))
    assert numbers.scale == "interval"
    assert {row.method for row in compare(numbers).methods} >= {"mean", "median"}
    assert len(plan(numbers, budget=1).table["item"]) == 1


VERBS = {
    "aggregate": ("-s", "majority", "--json"),
    "agree": ("--json", "--repeats", "0"),
    "compare": ("-s", "majority", "-s", "wawa", "--json"),
    "identify": ("--json", "--no-latent", "--no-copying"),
    "next": ("--budget", "3", "--draws", "0", "--json"),
    "check": ("--json",),
    "report": ("-s", "majority", "-o", "report.html", "--json"),
}


@pytest.mark.parametrize("scale", ["auto", "nominal", "ordinal"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_the_scale_and_notes_what_it_detects(verb, scale, tmp_path):
    write_table(tmp_path, ratings(n_items=60))
    done = run(verb, "answers.csv", "--scale", scale, *VERBS[verb], cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    noted = "labels 1 to 5 are taken for an ordinal scale" in done.stderr.decode()
    assert noted == (scale == "auto")
    found = json.loads(done.stdout)
    detected = "ordinal" if scale == "auto" else scale
    if verb in ("agree", "check"):
        assert found["scale"] == detected
    if verb == "report":
        assert found["check"]["scale"] == found["agreement"]["scale"] == detected


@pytest.mark.parametrize("verb", ["compare", "next"])
def test_verbs_take_a_slider(verb, tmp_path):
    write_table(tmp_path, ratings(n_classes=25))
    done = run(verb, "answers.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert "are taken for numbers" in done.stderr.decode()
    assert json.loads(done.stdout)


def test_the_scale_reaches_the_fit(tmp_path):
    write_table(tmp_path, ratings())
    done = run("aggregate", "answers.csv", "-s", "majority", "--save", "kept", cwd=tmp_path)
    assert done.returncode == 0
    assert ClassAggregation.load(tmp_path / "kept").answers.scale == "ordinal"


def test_ordinal_methods_are_compared_on_an_ordinal_scale(tmp_path):
    write_table(tmp_path, ratings(n_items=40, n_annotators=4))
    done = run("compare", "answers.csv", "--scale", "ordinal", "--json", cwd=tmp_path)
    methods = {row["method"] for row in json.loads(done.stdout)["methods"]}
    assert {"ordinal-distance", "ordinal-latent", "dawid-skene"} <= methods


def test_check_lists_ordered_classes_in_order(tmp_path):
    write_table(tmp_path, ratings())
    text = run("check", "answers.csv", cwd=tmp_path).stdout.decode()
    assert "scale: ordinal (disagreements are" in text
    line = next(line for line in text.splitlines() if line.startswith("classes:"))
    assert [part.split()[0] for part in line.removeprefix("classes: ").split(", ")] == list("12345")


def test_a_report_charts_ordered_classes_in_order(tmp_path):
    columns = ratings(n_items=60)
    drawn = report(read(columns), "majority").charts["classes"].numbers[1:]
    assert [row[0] for row in drawn] == list("12345")
    unordered = report(read(columns, scale="nominal"), "majority").charts["classes"].numbers[1:]
    shares = [float(row[2].rstrip(" %")) for row in unordered]
    assert shares == sorted(shares, reverse=True)
    assert [row[0] for row in unordered] != list("12345")


def test_watch_refuses_numbers_unless_they_are_declared(tmp_path):
    write_table(tmp_path, ratings(n_classes=25, n_items=30))
    done = run("watch", "answers.csv", "-o", "labels.csv", "--once", cwd=tmp_path)
    assert done.returncode == 2
    assert "watch needs classes" in done.stderr.decode()


def test_training_refuses_a_slider_before_anything_is_learned(tmp_path):
    pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")
    columns = ratings(n_classes=25, n_items=30)
    write_table(tmp_path, columns)
    lines = "".join(f"{item},a text about {item}\n" for item in range(30))
    (tmp_path / "texts.csv").write_text("item,text\n" + lines)
    labels = "".join(f"{item},{item}\n" for item in range(30))
    (tmp_path / "labels.csv").write_text("item,label\n" + labels)
    inputs = ("--inputs", "texts.csv")
    for command in (
        ("train", "answers.csv", "-s", "majority", *inputs),
        ("aggregate-deep", "answers.csv", "-s", "crowd-layer", *inputs),
        ("tendency", "fit", "answers.csv", "-o", "model", *inputs),
        ("recover", "evaluate", "answers.csv", *inputs),
        ("recover", "fit", "labels.csv", "-o", "model", *inputs),
    ):
        done = run(*command, cwd=tmp_path)
        assert done.returncode == 2, command
        assert "needs classes, but" in done.stderr.decode(), command


def test_a_repr_names_the_scale():
    assert "ordinal classes 1, 2" in repr(
        relation([("a", "x", "1"), ("a", "y", "2")], scale="ordinal")
    )
    assert isinstance(Annotations.from_labels([0], 2).scale, str)
