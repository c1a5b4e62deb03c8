"""Annotators who are authors of items, and do not grade their own."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from dissensus import Annotations, DataError, Numbers, OptionError, aggregate, simulate
from dissensus.aggregation.gaussian import PeerGrading
from dissensus.answers.selections import author_codes, without_own
from dissensus.formats.side_tables import read_authors

from ..support import run


def course(seed, strategy="peer-grading", size=120, graders=6):
    drawn = simulate(strategy, n_items=size, n_annotators=size, feedback=graders, seed=seed)
    return drawn, {str(item): str(one) for item, one in enumerate(drawn.extras["authors"])}


def ranking(result, truth):
    known = ~np.isnan(result.value)
    return spearmanr(result.value[known], truth[known]).statistic


def test_grades_of_own_work_are_left_out():
    grades = Numbers.from_columns("aabbc", ["ann", "bob", "ann", "bob", "ann"], [9, 4, 6, 8, 5])
    authors = {"a": "ann", "b": "bob", "c": "nobody", "d": "ann"}
    assert author_codes(grades, authors).tolist() == [0, 1, -1]
    kept, n_own = without_own(grades, authors)
    assert (kept.value.tolist(), n_own) == ([4.0, 6.0, 5.0], 2)
    assert aggregate(grades, "mean", authors=authors).value.tolist() == [4.0, 6.0, 5.0]
    with pytest.raises(DataError, match="no item has an author among the annotators"):
        aggregate(grades, authors={"a": "zoe"})


def test_labels_of_own_work_are_left_out_of_classes():
    labels = Annotations.from_columns("aaab", ["ann", "bob", "eve", "ann"], ["A", "B", "B", "A"])
    assert aggregate(labels, "naive-soft", authors={"a": "bob"}).posterior[0].tolist() == [0.5, 0.5]
    with pytest.raises(OptionError, match="plantnet counts authors' own labels"):
        aggregate(labels, "plantnet", authors={"a": "bob"})


@pytest.mark.parametrize("seed", range(20, 24))
def test_grades_are_ranked_better_than_by_the_mean(seed):
    drawn, authors = course(seed)
    found = aggregate(drawn.annotations, authors=authors)
    assert found.method.startswith("peer-grading")
    assert found.converged
    plain = aggregate(drawn.annotations, "mean", authors=authors)
    assert ranking(found, drawn.truth) > ranking(plain, drawn.truth)


def test_biases_and_the_tie_of_reliability_to_the_own_grade_are_recovered():
    drawn, authors = course(5, "peer-grading[slope=1,evenness=20]", size=300, graders=12)
    found = aggregate(drawn.annotations, authors=authors)
    bias, precision = drawn.extras["bias"], drawn.extras["precision"]
    assert np.corrcoef(found.bias, bias)[0, 1] > 0.8
    own = (drawn.truth - 70) / 10
    slope = np.polyfit(own, np.log(found.weight), 1)[0]
    assert 0.7 < slope < 1.3  # the log precision rises by 1 with a standard deviation
    assert np.corrcoef(np.log(found.weight), np.log(precision))[0, 1] > 0.8
    alone = aggregate(drawn.annotations, "PG1", authors=authors)
    error, other = (np.mean((one.value - drawn.truth) ** 2) for one in (found, alone))
    assert error < other


def test_without_a_tie_the_own_grade_changes_nothing():
    drawn, authors = course(3, "peer-grading[slope=0]")
    kept, _ = without_own(drawn.annotations, authors)
    alone = PeerGrading(tied=False, authors=authors).fit(kept)
    assert np.array_equal(alone.value, PeerGrading(tied=False).fit(kept).value)
    assert not np.array_equal(alone.value, PeerGrading(authors=authors).fit(kept).value)


def test_units_of_grades_do_not_matter():
    drawn, authors = course(4, size=40, graders=5)
    kept, _ = without_own(drawn.annotations, authors)
    scaled = Numbers.from_codes(
        kept.item,
        kept.annotator,
        kept.value * 1e3 - 500,
        items=kept.items,
        annotators=kept.annotators,
    )
    one, other = (PeerGrading(authors=authors).fit(grades).value for grades in (kept, scaled))
    np.testing.assert_allclose(one * 1e3 - 500, other, rtol=1e-6)


@pytest.mark.parametrize("kind", ["csv", "json", "txt", "npy"])
def test_authors_come_in_any_file(kind, tmp_path):
    path = tmp_path / f"authors.{kind}"
    if kind == "csv":
        path.write_text("item,author\n0,7\n1,3\n")
    elif kind == "json":
        path.write_text(json.dumps({"0": "7", "1": "3"}))
    elif kind == "txt":
        path.write_text("7\n3\n-1\n")
    else:
        np.save(path, [7, 3, -1])
    assert read_authors(path) == {"0": "7", "1": "3"}


def test_the_command_leaves_own_grades_out_and_says_so(tmp_path):
    drawn, authors = course(1, size=20, graders=6)
    grades = drawn.annotations
    rows = zip(grades.item.tolist(), grades.annotator.tolist(), grades.value.tolist(), strict=True)
    lines = [f"{item},{who},{value:.2f}" for item, who, value in rows]
    (tmp_path / "grades.csv").write_text("item,annotator,label\n" + "\n".join(lines))
    lines = [f"{item},{who}" for item, who in authors.items()]
    (tmp_path / "authors.csv").write_text("item,author\n" + "\n".join(lines))
    options = ("--authors", "authors.csv", "--scale", "interval", "--json", "-o", "out.csv")
    done = run("aggregate", "grades.csv", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    own = int((drawn.extras["authors"][grades.item] == grades.annotator).sum())
    assert own > 0
    assert f"{own} labels of authors on their own items are left out".encode() in done.stderr
    assert json.loads(done.stdout)["method"].startswith("peer-grading")
    assert json.loads(done.stdout)["n_labels"] == len(grades) - own
    done = run("aggregate", "grades.csv", "--authors", "grades.csv", cwd=tmp_path)
    assert done.returncode == 2
