"""The verbs for answers of other kinds than classes and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._plain import as_plain, as_rows
from .._progress import iterations, progress_bar
from ..errors import OptionError
from ._output import interval, note, number, print_scores, print_table, print_text, show_json
from ._reading import read_known_answers

if TYPE_CHECKING:
    from ..agreement.distances import AnswerAgreement
    from ..answers import Answers
    from ..consensus import Consensus, ConsensusMethod

SCORES = {
    "f1": "F1",
    "f1_50": "F1 at IoU .5",
    "precision": "precision",
    "recall": "recall",
    "overlap_f1": "F1 at IoU .5",
    "f1_75": "F1 at IoU .75",
    "iou": "intersection over union",
    "wer": "word error rate",
    "tau": "Kendall's tau",
    "jaccard": "Jaccard index",
    "exact": "exactly equal",
}
_MEASURES = {
    "alpha": "alpha",
    "observed": "observed distance",
    "expected": "expected distance",
    "token_alpha": "alpha of tokens",
    "span_f1": "F1 of pairs of annotators",
    "gamma": "pairwise gamma",
    "f1_50": "F1 at .5, mean over pairs",
    "iou": "intersection over union, mean over pairs",
    "jaccard_alpha": "alpha, Jaccard",
    "option_alpha": "alpha of options, mean",
}
_MOST = 20  # rows on a screen


def refuse(given: Mapping[str, Any], kind: str) -> None:
    """Refuse options that are for classes."""
    for name, value in given.items():
        if value:
            raise OptionError(f"{name} is for classes, and these are {kind}")


def method_of(answers: Answers, strategy: str | None, favour: str | None = None) -> ConsensusMethod:
    """Return the method of a specification, for the kind of the answers."""
    from ..registry import registries

    method = registries[answers.kind].create(strategy or "auto")
    if favour is None:
        return method
    if not hasattr(method, "favour"):
        raise OptionError(f"--favour is for marks; {strategy or 'auto'} on {answers.kind} has none")
    return replace(method, favour=favour)  # type: ignore[call-arg]


def fit(
    answers: Answers, method: ConsensusMethod, *, gold: Any = None, seed: int = 0, engine: Any = None
) -> Consensus:
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
    from ..engine import Local
    from ..writers import write

    known = read_known_answers(gold, answers, inputs)
    if isinstance(known, dict):
        raise OptionError("--gold for comparisons is a table of item and winner or ranking")
    method = method_of(answers, strategy, favour)
    result = fit(answers, method, gold=known, seed=seed, engine=Local(threads))
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


def agree(
    answers: Answers, *, per: str | None, output: str | None, as_json: bool, **settings: Any
) -> list[dict[str, Any]]:
    """Print how much annotators agree; return the rows to write."""
    from ..agreement import agree as measure

    if per == "class":
        raise OptionError(f"--per class is for classes, and these are {answers.kind}")
    with progress_bar("resampling") as progress:
        found = measure(answers, progress=progress, **settings)
    if as_json:
        show_json(found.as_dict())
    elif output != "-":
        _print_agreement(found, per)
    return found.rows(per)


def _print_agreement(found: AnswerAgreement, per: str | None) -> None:
    rows = [
        (
            _MEASURES[one.measure],
            number(one.value),
            interval(one.low, one.high, 3) or "–",
            number(one.error),
        )
        for one in found.estimates
    ]
    title = f"{found.kind}: {found.n_paired} items have two answers or more"
    columns = ("measure", ">value", f">{100 * found.confidence:g} % interval", ">error")
    print_table(columns, rows, title)
    if per:
        parts: Any = found.items if per == "item" else found.annotators
        cells = [(one.name, str(one.n_answers), number(one.distance)) for one in parts[:_MOST]]
        print_table((per, ">answers", ">distance"), cells, "Mean distance, the largest first")
        if len(parts) > _MOST:
            print_text(f"{len(parts) - _MOST} more; -o writes all.")
    for sentence in found.notes:
        print_text(f"Note: {sentence}.")


def evaluate(
    pred: str, truth: str, kind: str, *, inputs: str | None, as_json: bool, **resampling: Any
) -> None:
    """Score a consensus in a file against known answers."""
    from ..metrics import evaluate_answers
    from ..readers.any_kind import read_known

    given, known = (read_known(path, kind, inputs) for path in (pred, truth))
    if isinstance(given, dict) and not isinstance(known, dict):
        given = _rankings_by_score(given, known)
    scores = evaluate_answers(given, known, **resampling)
    if as_json:
        show_json({"kind": kind} | scores.as_dict())
        return
    note(f"{kind}: {scores.n_scored} items")
    what = "things" if isinstance(given, dict) else "items"
    print_scores(scores.scores, SCORES, f"{scores.n_scored} {what} scored")
    for count, words in (
        (scores.n_without_truth, "predicted items have no known answer"),
        (scores.n_without_prediction, "known answers have no prediction"),
    ):
        if count:
            print_text(f"{count} {words}")


def _rankings_by_score(scores: dict[str, float], known: Any) -> Any:
    """Return the order that scores give on every item of the truth."""
    import numpy as np

    names = [name for name in scores if name in set(known.things.tolist())]
    table = {"thing": np.array(names, dtype=object), "score": np.array([scores[n] for n in names])}
    return known.as_answers(table)
