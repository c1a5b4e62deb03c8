"""The verbs for answers of other kinds than classes and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..answers import KINDS
from ..base.progress import iterations, progress_bar
from ..base.storage import as_plain, as_rows
from ..errors import OptionError
from ..pages.terminal import note, show_json
from .files import read_known_answers

if TYPE_CHECKING:
    from ..aggregation.aggregation import AnswerAggregation
    from ..answers import Answers
    from ..method import Method


def refuse(for_labels: Mapping[str, Any], answers: Any) -> None:
    """Refuse options that are for classes and numbers."""
    for name, value in for_labels.items():
        if value and answers.kind in KINDS:
            raise OptionError(f"{name} is for classes, and these are {answers.kind}")


def method_of(
    answers: Answers, strategy: str | None, favour: str | None = None
) -> Method[Any, AnswerAggregation]:
    """Return the method of a specification, for the kind of the answers."""
    from ..registry import methods

    method = methods[answers.kind].create(strategy or "auto")
    if favour is None:
        return method
    if not hasattr(method, "favour"):
        raise OptionError(f"--favour is for marks; {strategy or 'auto'} on {answers.kind} has none")
    return replace(method, favour=favour)


def fit(
    answers: Answers,
    method: Method[Any, AnswerAggregation],
    *,
    gold: Any = None,
    seed: int = 0,
    engine: Any = None,
) -> AnswerAggregation:
    """Return the consensus, and print its notes."""
    with progress_bar("aggregating") as progress:
        result = method.fit(
            answers, gold=gold, seed=seed, engine=engine, progress=iterations(progress)
        )
    if not result.converged and result.trace:
        note(f"not converged after {len(result.trace)} iterations")
    for sentence in result.notes:
        note(sentence)
    return result


def aggregate(
    answers: Answers,
    *,
    strategy: str | None,
    favour: str | None,
    gold: str | None,
    inputs: str | None,
    output: str | None,
    to: str | None,
    save: str | None,
    as_json: bool,
    seed: int,
    threads: int | None,
) -> None:
    """Write the items table of a consensus."""
    from ..base.engine import Local
    from ..formats.writers_init import write

    gold_answers = read_known_answers(gold, answers, inputs)
    if isinstance(gold_answers, dict):
        raise OptionError("--gold for comparisons is a table of item and winner or ranking")
    method = method_of(answers, strategy, favour)
    result = fit(answers, method, gold=gold_answers, seed=seed, engine=Local(threads))
    if save:
        result.save(save)
    if output or not as_json:
        write(result, output or "-", format=to)
    if as_json:
        content = {"kind": result.kind, "method": result.method, "converged": result.converged}
        counts = {"n_items": answers.n_items, "n_annotators": answers.n_annotators}
        counts |= {"n_answers": len(answers), "n_empty": int(answers.empty.sum())}
        tables = {"items": as_rows(result.items), "annotators": as_rows(result.annotators)}
        show_json(as_plain(content | counts | {"notes": result.notes} | tables))
