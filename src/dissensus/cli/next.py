"""`dissensus next`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..pages.terminal import note, print_table, print_text, show_json
from .files import (
    class_options,
    examine_answers,
    read_annotations,
    read_known,
    read_probabilities,
    split_names,
    write_table,
)
from .verb import ANSWERS, KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..planning import Plan

_SHOWN = 8  # rows of the plan on the terminal
_MUCH = 0.5  # share of the labels for one annotator that calls for caution


@click.command("next")
@click.argument("path")
@options(
    (
        *("strategy", "limit", "per_item", "batch", "truth"),
        *("min_gain", "among", "probabilities", "output", "chart"),
        *(*ANSWERS, *READING, *KINDS, "json", "seed"),
    ),
    budget=100.0,
    target=0.95,
    strategy="joint",
    cost=Computed("1"),
    draws=10,
)
def next(  # noqa: A001
    path: str,
    budget: float,
    strategy: str,
    cost: str | None,
    limit: str | None,
    per_item: int | None,
    batch: int | None,
    target: float,
    truth: str | None,
    min_gain: float | None,
    among: str | None,
    probabilities: str | None,
    draws: int,
    output: str | None,
    chart: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Plan what to label next, by which annotator, and when to stop.

    The plan lists pairs of item and annotator, the largest expected gain per cost first. The curve
    predicts the accuracy for other budgets. Known labels (--truth) correct the expected accuracy;
    nothing is learned from them. --among may name new annotators. Of answers of other kinds it
    lists the items to show again, by the expected distance of answers.

    \b
    Example:
      dissensus next answers.csv --budget 200 --target 0.95 -o plan.csv
    """
    from ..aggregation.sections import curve_chart
    from ..pages.charts import check_chart, save_chart
    from ..planning import plan

    if chart:
        check_chart(chart)
    answer_reading = examine_answers(path, **reading)
    if answer_reading is not None:
        from . import _answers

        unused = {"--limit": limit, "--batch": batch, "--truth": truth, "--min-gain": min_gain}
        unused |= {"--among": among, "--probabilities": probabilities, "--chart": chart}
        _answers.refuse(unused | {"--cost": cost}, answer_reading.answers.kind)
        most = {"budget": budget, "per_item": per_item}
        _answers.plan(answer_reading.answers, most, output=output, as_json=as_json)
        return
    annotations = read_annotations(path, **class_options(path, reading))
    people = split_names(among)
    if people is None and annotations.mixed_kinds:
        people = annotations.annotators[~annotations.is_kind("model")].tolist()
        note("only people are asked; --among names others, too")
    with progress_bar("sampling") as progress:
        proposal = plan(
            annotations,
            budget=budget,
            policy=strategy,
            cost=_amounts(cost, "cost"),
            limit=_amounts(limit, "limit"),
            per_item=per_item,
            batch=batch,
            annotators=people,
            probabilities=read_probabilities(probabilities, annotations),
            target=target,
            truth=read_known(truth, annotations),
            min_gain=min_gain,
            draws=draws,
            seed=seed,
            progress=progress,
        )
    write_table(proposal.table, output)
    if as_json:
        show_json(proposal.as_dict())
    elif output != "-":
        _print(proposal, output)
    if chart:
        save_chart(curve_chart(proposal), chart)
        note(f"drawn to {chart}")


def _amounts(amount: str | None, role: str) -> Any:
    """Return a number, or a number for every annotator from a table."""
    if amount is None:
        return None
    try:
        return float(amount)
    except ValueError:
        from ..formats.side_tables import read_amounts

        return read_amounts(amount, role)


def _print(plan: Plan, written: str | None) -> None:
    columns = [values[:_SHOWN].tolist() for values in plan.table.values()]
    rows: list[tuple[str, ...]] = [
        (item, annotator, f"{gain:.3f}", f"{ratio:.3g}", _share(before), _share(after))
        for item, annotator, gain, ratio, _, before, after in zip(*columns, strict=True)
    ]
    if len(plan) > _SHOWN:
        rows.append(("…", f"{len(plan) - _SHOWN} more", *[""] * 4))
    title = f"{len(plan)} labels for {plan.cost.sum():g}, by {plan.policy}"
    heads = ("item", "annotator", ">nats", ">per cost", ">now right", ">then")
    print_table(heads, rows, title)
    if plan.curve is not None:
        points = [
            (
                f"{point.labels}",
                f"{point.cost:g}",
                f"{point.accuracy:.1%}",
                f"{point.low:.1%} – {point.high:.1%}",
            )
            for point in plan.curve
        ]
        columns_of_curve = (">more labels", ">cost", ">right", ">90 % prediction interval")
        print_table(columns_of_curve, points, "Expected accuracy with more labels")
    right_now, right_then = plan.accuracy
    print_text(plan.reason)
    if right_now == right_now:
        print_text(f"Expected to be right: {right_now:.1%} now, {right_then:.1%} with this plan.")
    if plan.curve is not None and not plan.stop:
        expected = f"not expected within {plan.curve.points[-1].labels} more labels"
        if plan.reached is not None:
            point = plan.reached
            expected = f"expected after {point.labels} more labels, for {point.cost:.4g}"
        print_text(f"{plan.target:.1%} is {expected}.")
    for sentence in _cautions(plan):
        print_text(f"Caution: {sentence}")
    if written:
        print_text(f"Plan written to {written}.")


def _share(right: float) -> str:
    """Return a share as it is printed, a dash where it cannot be told."""
    return "–" if right != right else f"{right:.0%}"


def _cautions(plan: Plan) -> list[str]:
    """Return what to know before trusting the plan."""
    import numpy as np

    out = []
    if plan.annotations.scale == "ordinal":
        out.append("a label is right or wrong here, however near it is to the true one.")
    if not plan.errors.n_checked and plan.errors.n_items:
        out.append(
            "without known labels the number of errors can be off by a factor of two; --truth "
            "with items drawn at random narrows it."
        )
    load = np.bincount(plan.annotator, minlength=1)
    busiest = int(load.argmax())
    if len(plan) > 1 and load[busiest] > _MUCH * len(plan) and plan.annotations.n_annotators > 1:
        name = plan.annotations.annotators[busiest]
        out.append(f"{name} gets {load[busiest]} of {len(plan)} labels; --limit spreads them.")
    return out
