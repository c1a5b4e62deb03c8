"""Camps: who disagrees systematically, and groups that are given."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from dissensus import Annotations
from dissensus.answers.selections import content_order
from dissensus.errors import DataError, OptionError
from dissensus.formats.side_tables import read_attributes
from dissensus.quality import camps, group_differences
from dissensus.quality import camps as find
from dissensus.quality.camp_tests import fit_one_camp

from ..support import relation, rows_of, run, shared, shared_path


def crowd(seed, *, n_items=400, n_annotators=8, own=0.0, right=0.9, n_classes=2) -> Annotations:
    """Draw annotators, the last three of whom have a truth of their own on a share of items."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=(n_items, 2))
    same = rng.random(n_items) >= own
    truth[same, 1] = truth[same, 0]
    camp = (np.arange(n_annotators) >= n_annotators - 3).astype(int)
    noise = rng.integers(1, n_classes, size=(n_items, n_annotators))
    wrong = rng.random((n_items, n_annotators)) >= right
    labels = (truth[:, camp] + wrong * noise) % n_classes
    return Annotations.from_matrix(labels, classes=range(n_classes))


def severe(seed, n_items=400, n_annotators=8, levels=2) -> Annotations:
    """Draw one camp of annotators who differ in severity only."""
    rng = np.random.default_rng(seed)
    value = 1.5 * rng.normal(size=(n_items, 1)) - np.linspace(-1.5, 1.5, n_annotators)
    value = value + rng.logistic(size=(n_items, n_annotators)) / 1.5
    cuts = np.linspace(-1.5, 1.5, levels - 1) if levels > 2 else [0.0]
    return Annotations.from_matrix(np.searchsorted(cuts, value), classes=range(levels))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_camps_are_found_with_their_members(n_classes):
    found = camps(crowd(0, own=0.5, n_classes=n_classes))
    assert found.verdict == "camps"
    assert found.group.tolist() == [0] * 5 + [1] * 3
    assert found.t > 1.645
    assert found.z > 2.33
    assert found.same_group >= 0.85
    assert found.correlation_within - found.correlation_between >= 0.05


def test_correlations_are_kappas_of_pairs_who_give_labels_equally_often():
    from dissensus.metrics import pairwise

    annotations = crowd(1, own=0.5, n_items=1000)
    found, pairs = camps(annotations), pairwise(annotations)
    same = found.group[pairs.one] == found.group[pairs.other]
    assert found.correlation_within == pytest.approx(pairs.value[same].mean(), abs=0.01)
    assert found.correlation_between == pytest.approx(pairs.value[~same].mean(), abs=0.01)


def test_one_camp_is_not_divided_and_the_sentence_states_what_could_be_found():
    verdicts = [camps(crowd(seed)) for seed in range(4)]
    assert {one.verdict for one in verdicts} == {"none"}
    assert (verdicts[0].group == 0).all()
    assert verdicts[0].detectable <= 0.3
    assert "No camps were found among 8 annotators" in verdicts[0].sentence
    assert "smaller differences may exist" in verdicts[0].sentence


@pytest.mark.parametrize("levels", [2, 5])
def test_severity_is_not_taken_for_camps(levels):
    found = [
        camps(severe(seed, n_items=800, levels=levels), ordered=levels > 2) for seed in range(3)
    ]
    assert {one.verdict for one in found} <= {"severity", "none"}
    if levels == 2:
        assert found[0].verdict == "severity"
        assert found[0].t > 1.645
        assert "differ in how readily they give the label" in found[0].sentence


def test_camps_of_ordered_labels_are_found():
    rng = np.random.default_rng(0)
    value = rng.normal(size=(300, 2))
    value[:150, 1] = value[:150, 0]
    camp = np.array([0, 0, 0, 0, 1, 1, 1])
    scores = np.clip(np.round(value[:, camp] * 1.2 + rng.normal(size=(300, 7)) / 2), -2, 2)
    found = camps(Annotations.from_matrix(scores.astype(int) + 2), ordered=True)
    assert found.verdict == "camps"
    assert found.group.tolist() == camp.tolist()


def test_names_and_the_order_of_rows_do_not_matter():
    annotations = crowd(3, own=0.4)
    found = camps(annotations)
    rng = np.random.default_rng(0)
    names = dict(zip("01234567", rng.permutation(list("abcdefgh")).tolist(), strict=True))
    items = rng.permutation(1000)
    rows = [
        (f"i{items[int(item)]}", names[annotator], "yn"[int(label)])
        for item, annotator, label in rows_of(annotations)
    ]
    other = camps(relation([rows[k] for k in rng.permutation(len(rows))]))
    assert other.t == pytest.approx(found.t, abs=1e-9)
    assert other.z == pytest.approx(found.z, abs=1e-9)
    group = dict(zip(other.annotators.tolist(), other.group.tolist(), strict=True))
    assert [group[names[name]] for name in annotations.annotators.tolist()] == found.group.tolist()


def test_the_order_of_content_distinguishes_items_by_their_labels():
    annotations = crowd(0, n_items=50)
    items, annotators, classes = content_order(annotations)
    assert sorted(items.tolist()) == list(range(50))
    assert sorted(annotators.tolist()) == list(range(8))
    assert sorted(classes.tolist()) == [0, 1]
    assert content_order(annotations, ordered=True)[2].tolist() == [0, 1]


def test_the_sentence_names_both_camps_and_calls_nobody_wrong():
    found = camps(crowd(0, own=0.5))
    assert found.sentence.startswith("There are two camps: (1) 0, 1, 2, 3, 4; (2) 5, 6, 7.")
    assert "neither camp is wrong" in found.sentence
    assert json.loads(json.dumps(found.as_dict()))["verdict"] == "camps"


def test_dividing_items_have_different_labels_in_the_camps():
    annotations = crowd(0, own=0.5)
    found = camps(annotations)
    assert 10 <= len(found.dividing) <= 20
    for one in found.dividing:
        rows = annotations.item == one.item
        for camp in (0, 1):
            label = annotations.label[rows & (found.group[annotations.annotator] == camp)]
            share = np.bincount(label, minlength=2) / len(label)
            np.testing.assert_allclose(one.shares[camp], share)
    first = found.dividing[0].shares
    assert abs(first[0][1] - first[1][1]) == 1


def test_annotators_left_out_or_with_few_labels_take_no_part():
    annotations = crowd(0, own=0.5)
    few = annotations.keep((annotations.annotator != 0) | (annotations.item < 15))
    left_out = np.arange(8) == 1
    found = camps(few, left_out=left_out)
    assert found.group.tolist() in ([-1, -1, 0, 0, 0, 1, 1, 1], [-1, -1, 1, 1, 1, 0, 0, 0])
    with pytest.raises(OptionError, match="left_out has 3 values, but there are 8"):
        find(annotations, left_out=[True, False, False])


def test_random_annotators_take_no_part_even_if_not_given():
    rng = np.random.default_rng(0)
    rows = crowd(0, n_annotators=7)
    labels = np.append(rows.label.reshape(400, 7), rng.integers(2, size=(400, 1)), axis=1)
    assert camps(Annotations.from_matrix(labels)).group.tolist() == [0] * 7 + [-1]


def test_camps_are_not_looked_for_among_three_annotators():
    found = camps(crowd(0, n_annotators=3))
    assert found.verdict == "none"
    assert found.sentence.startswith("Camps were not looked for: only 3 annotators have 20 labels")


def test_too_many_annotators_are_not_compared():
    n = 3100
    item = np.repeat(np.arange(20 * n // 20), 20)
    annotator = np.tile(np.arange(n), 20)
    label = np.random.default_rng(0).integers(2, size=len(item))
    crowded = Annotations.from_codes(item, annotator, label, items=n, annotators=n, classes=2)
    assert "3100 annotators are too many" in camps(crowded).sentence


def test_a_label_given_twice_counts_once():
    annotations = crowd(0, own=0.5, n_items=200)
    rows = rows_of(annotations)
    assert camps(relation(rows + rows)).t == pytest.approx(camps(relation(rows)).t, abs=0.6)


def test_severity_and_marginals_of_drawn_crowds_are_those_of_the_data():
    annotations = severe(0, n_items=1000)
    columns = (annotations.item, annotations.annotator, annotations.label)
    item, annotator, label = (column.astype(np.int64) for column in columns)
    model = fit_one_camp(item, annotator, label, (1000, 8, 2))
    rng = np.random.default_rng(0)
    drawn = np.mean([np.bincount(annotator, model.draw(rng)) for _ in range(10)], axis=0) / 1000
    np.testing.assert_allclose(drawn, np.bincount(annotator, label) / 1000, atol=0.03)


def test_the_annotators_of_hs_brexit_form_two_camps():
    found = camps(shared("lewidi_hs_brexit"))
    assert found.verdict == "camps"
    first, second = map(set, found.members)
    assert {frozenset(first), frozenset(second)} == {
        frozenset({"Ann1", "Ann2", "Ann3"}),
        frozenset({"Ann4", "Ann5", "Ann6"}),
    }
    assert found.correlation_within == pytest.approx(0.51, abs=0.02)
    assert found.correlation_between == pytest.approx(0.31, abs=0.02)


@pytest.mark.parametrize("name", ["labelme", "rte", "bluebirds", "gwsd"])
def test_sets_without_camps_have_none(name):
    assert camps(shared(name)).verdict == "none"


# Groups that are given


def test_given_groups_differ_by_their_labels_with_an_interval():
    rng = np.random.default_rng(0)
    n = 40
    lenient = np.arange(n) < 15
    labels = (rng.random((300, n)) < 0.4 + 0.2 * lenient).astype(int)
    labels[rng.random(labels.shape) < 0.8] = -1
    found = group_differences(
        Annotations.from_matrix(labels), {"team": np.where(lenient, "x", "a")}
    )
    (one,) = found.columns[0].labels
    assert (one.group, one.label) == ("x", "1")
    assert one.low < 0.2 < one.high
    assert one.error == pytest.approx(np.sqrt(0.25 / (15 * 60) + 0.25 / (25 * 60)), rel=0.35)
    assert "Annotators of team = x give the label “1” " in found.sentences[0]


def test_intervals_of_given_groups_cover_a_difference_of_zero():
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        severity = rng.uniform(0.2, 0.6, 30)  # annotators differ, groups do not
        labels = (rng.random((60, 30)) < severity).astype(int)
        labels[rng.random(labels.shape) < 0.5] = -1
        annotations = Annotations.from_matrix(labels)
        (one,) = group_differences(annotations, {"g": [0, 1] * 15}).columns[0].labels
        missed += not one.low <= 0 <= one.high
    assert 2 <= missed <= 22


def test_agreement_within_given_groups_exceeds_that_between():
    annotations = shared("lewidi_hs_brexit")
    attributes = read_attributes(
        shared_path("lewidi_hs_brexit") / "workers.csv.gz", annotations.annotators
    )
    found = group_differences(annotations, attributes)
    (column,) = found.columns
    assert column.groups == {"control group": 3, "target group": 3}
    assert column.t == pytest.approx(7.5, abs=0.4)
    assert column.correlation_within > column.correlation_between + 0.1
    assert any("Annotators agree more with those of the same group" in s for s in found.sentences)


def test_flags_on_one_group_are_a_warning():
    rng = np.random.default_rng(0)
    party = np.repeat(["republican", "democrat", None], [20, 70, 5])
    labels = (rng.random((60, 95)) < 0.4).astype(int)
    flagged = np.zeros(95, dtype=bool)
    flagged[[*range(9), *range(20, 24)]] = True  # 9 of 20, and 4 of 70
    found = group_differences(Annotations.from_matrix(labels), {"party": party}, flagged)
    flags = {one.group: one for one in found.columns[0].flags}
    assert flags["republican"][1:5] == (9, 20, 4, 70)
    expected = stats.fisher_exact([[9, 11], [4, 66]]).pvalue
    assert flags["republican"].p_value == pytest.approx(expected)
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("Verdicts fall on party = republican more than on others")


def test_flags_on_one_party_of_gwsd_are_a_warning():
    annotations = shared("gwsd")
    table = read_attributes(shared_path("gwsd") / "workers.csv.gz", annotations.annotators)
    party = [
        next((name for name in ("democrat", "republican", "independent") if row[name]), None)
        for row in (
            {name: int(values[k] or 0) for name, values in table.items()}
            for k in range(annotations.n_annotators)
        )
    ]
    flagged = np.zeros(annotations.n_annotators, dtype=bool)
    for name, n in (("republican", 24), ("democrat", 15), ("independent", 1)):
        flagged[[k for k, one in enumerate(party) if one == name][:n]] = True
    found = group_differences(annotations, {"party": party}, flagged)
    flags = {one.group: one for one in found.columns[0].flags}
    assert flags["republican"][1:5] == (24, 85, 16, 297)
    table = [[24, 61], [16, 281]]
    assert flags["republican"].p_value == pytest.approx(stats.fisher_exact(table).pvalue)
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("Verdicts fall on party = republican more than on others")
    unflagged = group_differences(annotations, {"party": party})
    agrees = {one.group: one for one in unflagged.columns[0].labels if one.label == "agrees"}
    assert agrees["republican"].low > 0
    assert unflagged.columns[0].t < 1.645


def test_numbers_are_cut_at_quartiles_and_names_of_people_are_left_out():
    annotations = crowd(0, n_annotators=12)
    ages = [20, 21, 22, 30, 31, 32, 40, 41, 42, 50, 51, None]
    who = [f"person {k}" for k in range(12)]
    found = group_differences(annotations, {"age": ages, "who": who, "same": ["x"] * 12})
    assert [column.column for column in found.columns] == ["age"]
    assert list(found.columns[0].groups.values()) == [3, 3, 2, 3]
    assert found.notes[0] == "age: numbers were cut at their quartiles"
    assert all("no two groups have 2 annotators each" in note for note in found.notes[1:])


def test_a_table_about_other_annotators_is_refused_in_one_line(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("annotator,team\nzoe,a\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"people\.csv: no annotator .*'zoe' here, '0' there"):
        read_attributes(file, ["0", "1"])
    file.write_text("annotator\n0\n", encoding="utf-8")
    with pytest.raises(DataError, match="add a column for every attribute"):
        read_attributes(file, ["0", "1"])
    file.write_text("annotator,team\n1,a\n", encoding="utf-8")
    assert read_attributes(file, ["0", "1"]) == {"team": [None, "a"]}


def test_agree_prints_the_statement_about_camps(tmp_path):
    rows = rows_of(crowd(0, own=0.5, n_items=200))
    text = "\n".join(",".join(row) for row in [("item", "annotator", "label"), *rows])
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    done = run("agree", "a.csv", "--pairs", "--scale", "nominal", "--repeats", 0, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "There are two camps: (1) 0, 1, 2, 3, 4; (2) 5, 6, 7." in " ".join(
        done.stdout.decode().split()
    )
