"""Where agreement does not show how many labels are right, no number claims it."""

import csv
import json

import numpy as np
import pytest

import dissensus as ds
from dissensus import Annotations, aggregators
from dissensus.answers.identifiability import identifiable_annotators, identifiable_items
from dissensus.planning.label_errors import Checked, checked_errors, label_errors, plan_review

from ..support import run

NOBODY = "nobody labelled what another labelled"
CLASSES = "01"


def rows(*people, n=60, seed=0):
    """Return rows of everybody on n items, whose labels are right in four of five."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, n)
    wrong = random.random((len(people), n)) < 0.2
    labels = truth ^ wrong
    name = "".join(people)
    return [
        (f"{name}{item}", who, CLASSES[label])
        for who, given in zip(people, labels, strict=True)
        for item, label in enumerate(given.tolist())
    ]


def of(*parts, **declared):
    return Annotations.from_columns(
        *zip(*[row for part in parts for row in part], strict=True), **declared
    )


TRIO = rows("u", "v", "w")
SETS = {
    "one annotator": of(rows("a")),
    "one annotator, twice": of(rows("a"), rows("a", seed=1)),
    "one label per item": of(rows("a"), rows("b")),
    "two": of(rows("a", "b")),
    "two pairs": of(rows("a", "b"), rows("c", "d")),
    "a chain": of(rows("a", "b"), rows("b", "c")),
    "a star": of(rows("a", "b"), rows("a", "c"), rows("a", "d")),
    "a square": of(rows("a", "b"), rows("b", "c"), rows("c", "d"), rows("d", "a")),
}


@pytest.mark.parametrize("name", SETS)
def test_without_an_odd_cycle_nothing_is_identifiable(name):
    annotations = SETS[name]
    identifiable = identifiable_items(annotations)
    assert not identifiable.any()
    assert not identifiable_annotators(annotations, identifiable).any()


@pytest.mark.parametrize(
    "parts", [[TRIO], [rows("a", "b"), rows("b", "c"), rows("c", "a")]], ids=["three", "triangle"]
)
def test_with_an_odd_cycle_all_is_identifiable(parts):
    result = ds.aggregate(of(*parts), "dawid-skene")
    assert result.is_identifiable.all()
    assert result.unidentifiable is None
    assert np.isfinite(result.confidence).all()


def test_the_graph_is_coloured_as_a_search_does_it():
    random = np.random.default_rng(0)
    for _ in range(300):
        n_annotators, n = random.integers(1, 12), random.integers(1, 20)
        codes = [random.integers(0, high, n) for high in (9, n_annotators, 2)]
        annotations = Annotations.from_codes(
            *codes, items=9, annotators=int(n_annotators), classes=2
        )
        identifiable = searched(annotations)
        expected = [
            bool(
                identifiable
                & set(annotations.annotator[annotations.index[i] : annotations.index[i + 1]])
            )
            for i in np.flatnonzero(annotations.labels_per_item).tolist()
        ]
        assert identifiable_items(annotations)[annotations.labels_per_item > 0].tolist() == expected


def searched(annotations):
    """Return the annotators in a part with an odd cycle, by breadth-first search."""
    near = {code: set() for code in range(annotations.n_annotators)}
    for start, stop in zip(annotations.index[:-1], annotations.index[1:], strict=True):
        people = set(annotations.annotator[start:stop].tolist())
        for one in people:
            near[one] |= people - {one}
    colour, identifiable = {}, set()
    for start in near:
        queue, part, odd = [start] * (start not in colour), set(), False
        colour.setdefault(start, 0)
        while queue:
            one = queue.pop(0)
            part.add(one)
            for other in near[one]:
                if other not in colour:
                    colour[other] = 1 - colour[one]
                    queue.append(other)
                odd |= colour[other] == colour[one]
        identifiable |= part if odd else set()
    return identifiable


@pytest.mark.parametrize("method", list(aggregators))
def test_no_method_is_confident_where_nothing_is_identifiable(method):
    result = ds.aggregate(SETS["two"], method)
    assert np.isnan(result.confidence).all()
    assert np.isnan(result.annotators["quality"]).all()
    assert np.isnan(result.annotators["agreement"]).all()
    assert np.isfinite(result.posterior).all()
    assert np.isfinite(result.probabilities).all()
    assert np.isnan(result.to_pandas()["confidence"]).all()
    assert result.to_polars()["confidence"].null_count() == len(result.label)


def test_in_a_larger_set_only_parts_that_cannot_be_told_are_empty():
    result = ds.aggregate(of(TRIO, rows("a", "b"), items=None), "dawid-skene")
    own = np.array([item.startswith("ab") for item in result.answers.items.tolist()])
    assert (np.isnan(result.confidence) == own).all()
    people = np.array([name in "ab" for name in result.answers.annotators.tolist()])
    assert (np.isnan(result.annotators["quality"]) == people).all()
    assert "of 60 of 120 items" in result.unidentifiable.reason


@pytest.mark.parametrize(("n_known", "settled"), [(9, False), (10, True)])
def test_ten_known_items_tie_annotators_to_the_truth(n_known, settled):
    gold = {f"ab{item}": "0" for item in range(n_known)}
    result = ds.aggregate(SETS["two"], "dawid-skene", gold=gold)
    known = np.isin(result.answers.items.tolist(), list(gold))
    assert (result.confidence[known] == 1).all()
    assert np.isfinite(result.confidence[~known]).all() == settled
    assert (result.unidentifiable is None) == settled


def test_what_a_fit_could_tell_it_tells_of_other_items():
    fitted = ds.aggregate(of(TRIO), "dawid-skene")
    alone = of([("x", "u", "1"), ("y", "nobody before", "0")])
    assert np.isfinite(fitted.predict(alone).confidence).all()
    pair = ds.aggregate(SETS["two"], "dawid-skene")
    assert np.isnan(pair.predict(of([("x", "a", "1")])).confidence).all()


def test_a_saved_result_tells_what_it_identifiable(tmp_path):
    gold = {f"ab{item}": "0" for item in range(10)}
    result = ds.aggregate(SETS["two"], "dawid-skene", gold=gold)
    result.save(tmp_path / "result")
    again = ds.ClassAggregation.load(tmp_path / "result")
    np.testing.assert_array_equal(again.confidence, result.confidence)


def test_errors_are_counted_among_items_that_is_identifiable():
    confidence, empty = np.array([0.9, 0.6]), np.full(3, np.nan)
    both = np.concatenate([confidence, empty])
    checked = Checked(np.full(20, 0.1), np.arange(20) == 0)
    for errors in (label_errors, lambda given: checked_errors(given, checked)):
        assert errors(both) == errors(confidence)
        nothing = errors(empty)
        assert nothing.n_items == 0
        assert np.isnan(nothing.accuracy).all()
        assert not nothing.reaches(0.5)


def test_items_that_cannot_be_told_are_reviewed_last():
    certainty = np.array([np.nan, 0.99, 0.6, np.nan])
    review = plan_review(certainty, np.ones(4, dtype=bool))
    assert review.order.tolist() == [2, 1, 0, 3]
    assert review.n_items == 2
    nothing = plan_review(np.full(4, np.nan), np.ones(4, dtype=bool))
    assert not nothing.stop
    assert np.isnan(nothing.wrong).all()


def written(tmp_path, annotations):
    annotations.to_pandas().to_csv(tmp_path / "answers.csv", index=False)
    return annotations


def test_one_annotator_gets_no_number_from_any_verb(tmp_path):
    written(tmp_path, SETS["one annotator"])
    done = run("aggregate", "answers.csv", "-o", "labels.csv", cwd=tmp_path)
    assert NOBODY in done.stderr.decode()
    with (tmp_path / "labels.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert {row["confidence"] for row in table} == {""}
    assert all(row["p:0"] and row["p:1"] for row in table)
    summary = json.loads(run("aggregate", "answers.csv", "--json", cwd=tmp_path).stdout)
    assert summary["mean_confidence"] is None
    assert summary["best"] == summary["disputed"] == []
    assert NOBODY in summary["cannot_be_told"]
    shown = run("report", "answers.csv", cwd=tmp_path).stdout.decode()
    assert NOBODY in " ".join(shown.split())
    assert "of the inferred labels" not in shown
    assert "60 items labelled by two more people" in " ".join(shown.split())
    found = json.loads(run("report", "answers.csv", "--json", "--force", cwd=tmp_path).stdout)
    assert found["errors"]["expected"] is None
    assert found["stop"] is False
    assert found["relabel"] == []
    plan = json.loads(run("next", "answers.csv", "--json", cwd=tmp_path).stdout)
    assert {row["accuracy_before"] for row in plan["plan"]} <= {None}
    assert plan["accuracy"] == {"now": None, "with_plan": None}
    assert NOBODY in plan["reason"]
    check = json.loads(run("check", "answers.csv", "--json", cwd=tmp_path).stdout)
    assert "cannot-be-told" in {one["code"] for one in check["findings"]}
    done = run("compare", "answers.csv", "-s", "majority", "--json", cwd=tmp_path)
    assert NOBODY in " ".join(json.loads(done.stdout)["signs"])
    (tmp_path / "folder").mkdir()
    (tmp_path / "answers.csv").rename(tmp_path / "folder" / "answers.csv")
    watch = ("watch", "folder", "-o", "now.csv", "--once")
    assert NOBODY in run(*watch, cwd=tmp_path).stderr.decode()
    with (tmp_path / "now.csv").open(newline="") as file:
        assert {row["confidence"] for row in csv.DictReader(file)} == {""}


def test_labels_without_confidence_are_scored(tmp_path):
    written(tmp_path, SETS["two"])
    run("aggregate", "answers.csv", "-o", "labels.csv", cwd=tmp_path)
    truth = "".join(f"ab{item},{item % 2}\n" for item in range(60))
    (tmp_path / "truth.csv").write_text(f"item,label\n{truth}")
    done = run("evaluate", "labels.csv", "--truth", "truth.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert "accuracy" in json.dumps(scores)


def test_two_annotators_are_told_how_often_they_agree(tmp_path):
    annotations = written(tmp_path, SETS["two"])
    label = annotations.label.reshape(-1, 2)
    agree = f"these two agree on {(label[:, 0] == label[:, 1]).mean():.0%} of 60 items"
    found = json.loads(run("report", "answers.csv", "--json", cwd=tmp_path).stdout)
    assert any(agree in sentence for sentence in found["sentences"])
    remedy = "Have 50 of these 60 items labelled by a third person"
    assert any(action.startswith(remedy) for action in found["actions"])
    scores = json.loads(run("identify", "answers.csv", "--json", cwd=tmp_path).stdout)
    assert {one["accuracy"] for one in scores["annotators"]} == {None}


def test_in_a_larger_set_the_share_right_says_over_how_many():
    found = ds.report(of(TRIO, rows("a", "b")), "dawid-skene")
    text = " ".join(found.sentences)
    assert "of the inferred labels of 60 items are right" in text
    assert "How many labels of 60 of 120 items are right cannot be told" in text
    assert found.errors.n_items == 60
    alone = ds.report(of(TRIO), "dawid-skene")
    assert "of the inferred labels are right" in " ".join(alone.sentences)
    assert found.layout()


def test_shards_tell_what_the_whole_tells(tmp_path):
    pl = pytest.importorskip("polars")
    annotations = of(TRIO, rows("a", "b"), rows("b", "c"), rows("d"))
    frame = annotations.to_polars()
    for part in range(3):
        frame[part::3].write_parquet(tmp_path / f"part{part}.parquet")
    run("aggregate", *(f"part{k}.parquet" for k in range(3)), "-s", "dawid-skene", "--resume",
        "--work", "work", "-o", "labels.csv", cwd=tmp_path)  # fmt: skip
    table = pl.read_csv(tmp_path / "labels.csv", schema_overrides={"item": pl.String})
    whole = ds.aggregate(annotations, "dawid-skene").to_polars()
    both = table.join(whole, on="item")
    assert len(both) == len(whole)
    assert (both["confidence"].is_null() == both["confidence_right"].is_null()).all()
    assert 0 < both["confidence"].null_count() < len(both)
