import numpy as np
import pytest

from dissensus import Annotations, OptionError
from dissensus.quality.cleaning import clean, read_rule

from ..annotator_crowds import crowd, quick


def test_rules_are_read_and_binds_more_tightly_than_or():
    rule = read_rule("a<1 or b >= -2.5e1 and item.cause == 'this or that' or c!=x y")
    assert [[tuple(one) for one in part] for part in rule] == [
        [("a", "<", "1")],
        [("b", ">=", "-2.5e1"), ("item.cause", "==", "this or that")],
        [("c", "!=", "x y")],
    ]


@pytest.mark.parametrize(
    "rule", ["", "spam_score", "spam_score < ", "< 3", "a < 1 and", "a = 1", "f(x) < 1", "1 < 2"]
)
def test_rules_that_cannot_be_read_are_refused(rule):
    with pytest.raises(OptionError, match="cannot read"):
        read_rule(rule)


def test_cleaning_drops_labels_by_rules_and_reports_changes():
    simulated = crowd(n_items=60)
    scores = quick(simulated.annotations)
    found = clean(simulated.annotations, ["verdict == random", "labels < 1"])
    bad = scores.verdict == "random"
    assert bad.any()
    assert set(found.annotators.tolist()) == set(simulated.annotations.annotators[bad].tolist())
    np.testing.assert_array_equal(found.dropped, bad[simulated.annotations.annotator])
    before, after = found.before.labels, found.after.labels
    changed = [str(simulated.annotations.items[i]) for i in range(60) if before[i] != after[i]]
    assert [change.item for change in found.changes] == changed
    assert len(found.annotations) + found.dropped.sum() == len(simulated.annotations)
    assert found.after.answers == found.annotations


def test_conditions_on_annotators_and_items_meet_in_labels():
    annotations = crowd(n_items=30).annotations
    found = clean(annotations, "annotator == 0 and item.item != 3")
    expected = (annotations.annotators[annotations.annotator] == "0") & (
        annotations.items[annotations.item] != "3"
    )
    np.testing.assert_array_equal(found.dropped, expected)


def test_nothing_holds_of_a_score_that_is_not_known():
    annotations = crowd(n_items=30).annotations
    for sign in ("<", ">", "!=", "=="):
        assert not clean(annotations, f"seconds {sign} 3").dropped.any()


def test_rules_that_make_no_sense_are_refused():
    annotations = crowd(n_items=30).annotations
    for rule, message in {
        "nothing < 1": "no column 'nothing'",
        "item.nothing < 1": "no column 'item.nothing'",
        "accuracy < good": "is a number",
        "verdict < spammer": "is a text",
        "labels >= 0": "leave no label",
    }.items():
        with pytest.raises(OptionError, match=message):
            clean(annotations, rule)


def test_spammer_is_short_for_random_or_constant():
    rng = np.random.default_rng(0)
    labels = np.tile(rng.integers(0, 3, 100)[:, None], 6)
    labels[:, 4] = rng.integers(0, 3, 100)
    labels[:, 5] = 1
    annotations = Annotations.from_matrix(labels)
    found = clean(annotations, "verdict == spammer")
    assert found.annotators.tolist() == ["4", "5"]
    assert clean(annotations, "verdict != spammer").annotators.tolist() == ["0", "1", "2", "3"]
    assert clean(annotations, "verdict == constant").annotators.tolist() == ["5"]
