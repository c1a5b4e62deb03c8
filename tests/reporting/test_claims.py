"""Every sentence of a report is computed again, on data whose truth is known."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dissensus import demo, report

from ..support import rows_of

pytest.importorskip("krippendorff")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def claims():
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("benchmarks", "benchmarks/trust"):
            patch.syspath_prepend(str(Path(__file__).parents[2] / folder))
        import claim_people
        import claims

        patch.setattr(claim_people, "PLANTED", 3)
        yield claims


def crowd_of_demo():
    annotations, truth = demo()
    rows = pd.DataFrame(rows_of(annotations), columns=["item", "annotator", "label"])
    return rows, dict(truth)


def crowd_of_raters(seed=2):
    """Ratings 1 to 5: two of 20 raters answer at random, one rates a step lower."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, 300)
    given = np.clip(truth[:, None] + np.rint(rng.normal(0, 0.6, (300, 20))).astype(int), 1, 5)
    given[:, :2] = rng.integers(1, 6, (300, 2))
    given[:, 2] = np.clip(given[:, 2] - 1, 1, 5)
    shown = rng.random((300, 20)).argsort(axis=1) < 7
    item, annotator = np.nonzero(shown)
    labels = given[item, annotator].astype(str)
    rows = pd.DataFrame({"item": item.astype(str), "annotator": annotator, "label": labels})
    rows["annotator"] = "r" + rows["annotator"].astype(str)
    rows["value"] = rows["label"].astype(float)
    return rows, {str(i): str(label) for i, label in enumerate(truth)}


def crowd_with_camps(seed=0):
    """Eight annotators in two camps, with another truth on three of eight items."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=(400, 2))  # (item, camp)
    truth[:250, 1] = truth[:250, 0]
    right = rng.random((400, 8)) < 0.9
    labels = (truth[:, [0] * 5 + [1] * 3] == right).astype(int)
    item, annotator = np.indices(labels.shape).reshape(2, -1)
    names = np.array(list("abcdefgh"))[annotator]
    given = labels.ravel().astype(str)
    return pd.DataFrame({"item": item.astype(str), "annotator": names, "label": given}), {}


def case_of(claims, crowd, folder, with_truth=False):
    rows, hidden = crowd()
    path, truth = folder / "answers.csv", folder / "truth.csv"
    rows[["item", "annotator", "label"]].to_csv(path, index=False)
    pd.DataFrame(hidden.items(), columns=["item", "label"]).to_csv(truth, index=False)
    made = report(str(path), truth=str(truth) if with_truth else None)
    given, ordered = (hidden if with_truth else {}), "value" in rows
    name = crowd.__name__
    return claims.Case(name, rows, made, made.layout(), folder, given, hidden, None, ordered)


@pytest.mark.parametrize("with_truth", [False, True])
def test_what_a_report_on_classes_states_is_true(claims, tmp_path, with_truth):
    case = case_of(claims, crowd_of_demo, tmp_path, with_truth)
    verdicts = claims.check(case)
    assert [one for one in verdicts if one.ok is False] == []
    assert {"volume", "agreement", "people", "leave_out"} <= {one.claim for one in verdicts}
    # Simulated annotators share no errors, so there may be fewer wrong labels than stated.
    assert sum(case.wrong.values()) <= case.report.errors.high


def test_what_a_report_on_ratings_states_is_true(claims, tmp_path):
    case = case_of(claims, crowd_of_raters, tmp_path)
    verdicts = claims.check(case)
    assert [one for one in verdicts if one.ok is False] == []
    assert any("within one step" in one for one in case.report.sentences)
    random = next(one for one in case.report.sentences if "at random" in one)
    assert set(re.findall(r"\br\d+", random)) == {"r0", "r1"}
    assert "r2" in case.people_of["harsh"]


def test_what_a_report_on_camps_states_is_true(claims, tmp_path):
    case = case_of(claims, crowd_with_camps, tmp_path)
    verdicts = claims.check(case)
    assert [one for one in verdicts if one.ok is False] == []
    assert {"camps", "camps_differ", "keep_camps"} <= {one.claim for one in verdicts}
    assert case.report.camps.members == (list("abcde"), list("fgh"))


def test_a_false_sentence_and_an_unknown_one_are_found(claims, tmp_path):
    case = case_of(claims, crowd_with_camps, tmp_path)
    count = "9 annotators gave 3200 labels to 400 items, 8.0 each on average."
    sentences = [count, "All is well."]
    case.report.__dict__["sentences"] = sentences
    false = [one for one in claims.check(case) if one.ok is False]
    assert [(one.claim, one.sentence) for one in false if one.sentence in sentences] == [
        ("volume", count),
        ("unknown", "All is well."),
    ]
