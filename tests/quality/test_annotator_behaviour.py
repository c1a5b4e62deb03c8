from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import Annotations
from dissensus.base.probability import difference_p_value, proportion
from dissensus.quality.verdicts import annotator_behaviour

from ..annotator_crowds import crowd, quick
from ..support import annotation_rows


def test_the_ends_of_an_interval_are_where_the_share_would_be_just_as_far():
    right, count = np.array([3.0, 0, 10, 50]), np.array([10.0, 10, 10, 60])
    found = proportion(right, count)
    for end in (found.low, found.high):
        inside = (end > 0) & (end < 1)
        away = np.abs(found.value - end) / np.sqrt(end * (1 - end) / count + 1e-300)
        np.testing.assert_allclose(away[inside], 1.959963984540054, rtol=1e-9)
    assert found.low[1] == 0
    assert found.high[2] == 1
    assert np.isnan(proportion(np.zeros(1), np.zeros(1)).low[0])


def test_shares_that_are_equal_seldom_seem_to_differ():
    rng = np.random.default_rng(4)
    right = rng.binomial(40, 0.8, (2, 20_000)).astype(float)
    p_value = difference_p_value(right, np.full((2, 20_000), 40.0))
    assert 0.025 < (p_value < 0.05).mean() < 0.06


@settings(max_examples=30, deadline=None)
@given(rows=annotation_rows(), data=st.data())
def test_behaviour_is_that_of_plain_counts(rows, data):
    times = data.draw(st.permutations(range(len(rows))))
    item, annotator, label = zip(*rows, strict=True)
    took = data.draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    annotations = Annotations.from_columns(
        item, annotator, label, time=np.array(times), duration=np.array(took, dtype=float)
    )
    found = annotator_behaviour(annotations)
    for position, name in enumerate(annotations.annotators.tolist()):
        mine = sorted(
            (time, x, i, seconds)
            for i, a, x, time, seconds in zip(item, annotator, label, times, took, strict=True)
            if a == name
        )
        longest, now = 1, 1
        for before, after in pairwise(mine):
            now = now + 1 if before[1] == after[1] else 1
            longest = max(longest, now)
        counts = Counter(x for _, x, _, _ in mine)
        met = [x == y for _, x, i, _ in mine for j, b, y in rows if i == j and b != name]
        assert found.labels[position] == len(mine)
        assert found.classes_used[position] == len(counts)
        assert found.top_share[position] == pytest.approx(max(counts.values()) / len(mine))
        assert found.longest_run[position] == longest
        assert found.seconds[position] == np.median([seconds for *_, seconds in mine])
        if met:
            assert found.agreement[position] == pytest.approx(np.mean(met))
        else:
            assert np.isnan(found.agreement[position])


def test_without_times_there_are_no_runs_and_no_drift():
    annotations = crowd().annotations
    found = quick(annotations)
    assert np.isnan(found.behaviour.longest_run).all()
    assert np.isnan(found.behaviour.seconds).all()
    assert np.isnan(found.drift).all()
    texts = Annotations.from_columns("ab", "xx", "01", time=["3/1/24", "12/1/23"])
    assert np.isnan(annotator_behaviour(texts).longest_run).all()


def test_accuracy_that_falls_over_time_is_reported():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 400)
    labels = np.stack([truth] * 4, axis=1)
    labels[200:, 3] = rng.integers(0, 2, 200)
    annotations = Annotations.from_matrix(labels)
    stamp = np.datetime64("2026-01-01") + annotations.item.astype("timedelta64[h]")
    annotations = Annotations(**{**vars(annotations), "columns": {"time": stamp}})
    found = quick(annotations)
    assert found.first_half[3] == 1
    assert found.second_half[3] < 0.65
    assert found.drift[3] < 1e-6
    assert (found.drift[:3] > 0.5).all()
    assert "100% right at first" in found.evidence[3]
