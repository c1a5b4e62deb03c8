"""The one loop of all methods that go in rounds, and that they do go through it."""

from typing import NamedTuple

import pytest

from dissensus import aggregate, aggregators, estimators, simulate
from dissensus.base.iteration import iterate, relative_change_below


class Halved(NamedTuple):
    left: float
    objective: float = float("nan")


def halve(last: Halved) -> Halved:
    return Halved(last.left / 2, -last.left / 2)


def test_it_ends_when_a_round_changes_little():
    summary = []
    ended = iterate(
        Halved(8.0),
        halve,
        lambda trace, *_: relative_change_below(trace, 0.3),
        100,
        lambda *row: summary.append(row),
    )
    assert ended.trace == (-4.0, -2.0, -1.0, -0.5, -0.25)
    assert ended.converged
    assert ended.state == Halved(0.25, -0.25)
    assert summary == list(enumerate(ended.trace, 1))


def test_it_ends_after_the_most_rounds_and_says_so():
    ended = iterate(Halved(8.0), halve, lambda *_: False, 3, lambda *_: None)
    assert ended == (Halved(1.0, -1.0), (-4.0, -2.0, -1.0), False)


def test_convergence_sees_this_state_and_the_last():
    seen = []

    def settled(trace, now, before):
        seen.append((now.left, before.left))
        return now.left < 2

    assert iterate(Halved(8.0), halve, settled, 9, lambda *_: None).converged
    assert seen == [(4.0, 8.0), (2.0, 4.0), (1.0, 2.0)]


ITERATIVE = ["glad", "glad[solver=cg]", "lfc", "minimax-entropy", "dawid-skene"]


@pytest.mark.parametrize("spec", ITERATIVE)
def test_methods_report_iterations_and_stop_at_the_maximum(spec):
    annotations = simulate(
        "one-coin", n_items=60, n_annotators=8, n_classes=3, feedback=5
    ).annotations
    summary = []
    method = aggregators.create(spec)
    result = aggregate(annotations, method, progress=lambda *row: summary.append(row))
    assert summary[-len(result.trace) :] == list(enumerate(result.trace, 1))
    short = aggregate(
        annotations, aggregators.create(f"{spec.partition('[')[0]}[max_iter=2,tol=0]")
    )
    assert len(short.trace) == 2
    assert not short.converged


@pytest.mark.parametrize("name", ["gaussian", "lfc-n", "catd", "crh", "pm"])
def test_estimators_report_iterations_and_stop_at_the_maximum(name):
    annotations = simulate("numeric", n_items=60, n_annotators=8).annotations
    summary = []
    found = aggregate(annotations, name, progress=lambda *row: summary.append(row))
    assert [number for number, _ in summary] == list(range(1, len(summary) + 1))
    assert found.trace in ((), tuple(objective for _, objective in summary))
    assert not aggregate(annotations, estimators.create(f"{name}[max_iter=1]")).converged
