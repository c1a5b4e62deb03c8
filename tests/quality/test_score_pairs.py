from types import SimpleNamespace

import numpy as np
import pytest

from dissensus import Annotations, DataError, demo, identify, report
from dissensus.quality.scores import Scored, find_score, score
from dissensus.quality.sections import annotator_pair, item_pair, score_pair


def rows(figure):
    return figure.spec["data"]["values"]


def test_annotators_are_drawn_by_trace_and_spam_score_and_coloured_by_verdict():
    scores = identify(demo()[0])
    drawn = {row["annotator"]: row for row in rows(annotator_pair(scores))}
    names = scores.annotations.annotators.tolist()
    assert [drawn[name]["x"] for name in names] == scores.trace.round(4).tolist()
    assert [drawn[name]["y"] for name in names] == scores.spam_score.round(4).tolist()
    assert [drawn[name]["group"] for name in names] == scores.verdict.tolist()


def test_the_caption_has_the_rank_correlation_and_who_is_left_out():
    names = np.array(["a", "b", "c", "d"], dtype=object)
    one = Scored(find_score("waum"), names, np.array([1.0, 2, 3, np.nan]))
    other = Scored(find_score("entropy"), names, np.array([3.0, 2, 1, 0]))
    figure = score_pair(one, other)
    assert figure.title == "Items by WAUM and entropy"
    assert "is -1.00. 1 items without both" in figure.words
    assert len(rows(figure)) == 3
    constant = Scored(find_score("entropy"), names, np.zeros(4))
    assert "the same for all" in score_pair(one, constant).words
    nothing = Scored(find_score("entropy"), names, np.full(4, np.nan))
    assert score_pair(one, nothing) is None


def test_many_items_become_a_grid_whose_counts_add_up():
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(2500), 3)
    annotations = Annotations.from_columns(
        item, np.tile([0, 1, 2], 2500), rng.integers(0, 3, len(item))
    )
    entropy = score(annotations, "entropy")
    margin = score(annotations, "margin")
    assert sum(row["count"] for row in rows(score_pair(margin, entropy))) == 2500


def test_the_report_draws_items_by_waum_where_it_is_given(tmp_path):
    annotations = demo()[0]
    waum = dict.fromkeys(annotations.items.tolist()[:100], 0.5)
    waum |= {annotations.items[0]: -0.25}
    (tmp_path / "w.csv").write_text("item,waum\n" + "\n".join(f"{a},{b}" for a, b in waum.items()))
    page = report(annotations, "majority", name="demo", waum=tmp_path / "w.csv")
    assert len(rows(page.charts["item scores"])) == 100
    assert "Items by WAUM and entropy" in page.page()
    plain = report(annotations, "majority", name="demo")
    assert "item scores" not in plain.charts
    assert "annotator scores" in plain.charts
    with pytest.raises(DataError, match="WAUM is of other items: 'nobody'"):
        report(annotations, "majority", waum={"nobody": 1.0})


def test_items_that_are_too_hard_have_a_colour_of_their_own():
    annotations = Annotations.from_columns("aabbcc", "xyxyxy", "001101")
    waum = np.array([0.9, -0.2, 0.1])
    hard = SimpleNamespace(annotations=annotations, measure="waum", score=waum, pruned=waum < 0)
    figure = item_pair(hard, score(annotations, "entropy"))
    assert [row["group"] for row in rows(figure)] == ["kept", "too hard", "kept"]
    assert figure.spec["encoding"]["color"]["scale"]["domain"] == ["too hard", "kept"]
