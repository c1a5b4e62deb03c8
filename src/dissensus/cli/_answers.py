"""The verbs for answers of other kinds than classes and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..answers import KINDS
from ..base.progress import iterations, progress_bar
from ..base.storage import as_plain, as_rows
from ..errors import OptionError
from ..pages.terminal import note, number, print_table, print_text, show_json
from .files import examine_path, read_known, read_known_answers

if TYPE_CHECKING:
    from ..aggregation.aggregation import AnswerAggregation
    from ..answers import Answers
    from ..method import Method

_MOST = 20  # rows on a screen
_SHOWN = (
    *("found", "spurious", "sensitivity", "specificity", "honest", "side", "ties", "iou"),
    *("accuracy", "quality"),
)


def read_any(path: str, reading: Mapping[str, Any], *, as_classes: bool = False) -> Any:
    """Return the answers of a file, of any kind, or read as classes."""
    kind = {"kind": "single"} if as_classes else {}
    return examine_path(path, **dict(reading) | kind).answers


def read_any_known(path: str | None, answers: Any, inputs: str | None = None) -> Any:
    """Return what is known of answers, of their kind, if a file is given."""
    if answers.kind in KINDS:
        return read_known_answers(path, answers, inputs)
    return read_known(path, answers)


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


def identify(
    answers: Answers,
    *,
    strategy: str | None,
    gold: str | None,
    inputs: str | None,
    items: bool,
    output: str | None,
    top: int,
    as_json: bool,
    seed: int,
) -> None:
    """Write or print the table of annotators or of items."""
    from ..quality import identify as score
    from .files import write_table

    gold_answers = read_known_answers(gold, answers, inputs)
    result = fit(answers, method_of(answers, strategy), gold=gold_answers, seed=seed)
    scores = score(answers, result, seed=seed)
    table = scores.items if items else scores.annotators
    write_table(table, output)
    if as_json:
        show_json(scores.as_dict())
    elif not output:
        _print_items(scores, top) if items else _print_annotators(scores, top)


def _print_items(scores: Any, top: int) -> None:
    table = scores.items
    rows = [
        (str(item), str(n), str(empty), number(distance))
        for item, n, empty, distance in zip(
            *(t[:top].tolist() for t in table.values()), strict=True
        )
    ]
    title = f"{len(table['item'])} items, those with the largest distance first"
    print_table(("item", ">answers", ">empty", ">distance"), rows, title)
    _print_rest(len(table["item"]), top)


def _print_annotators(scores: Any, top: int) -> None:
    import numpy as np

    from ..quality.answers import FEW, LIKE_OTHERS

    table, verdict = scores.annotators, scores.verdict
    rank = {LIKE_OTHERS: 1, FEW: 2}
    order = np.lexsort(
        (-np.nan_to_num(table["excess"]), [rank.get(word, 0) for word in verdict.tolist()])
    )
    names = [name for name in _SHOWN if name in table]
    rows = []
    for code in order[:top].tolist():
        row = [str(table["annotator"][code]), str(verdict[code]), str(table["n_answers"][code])]
        for name in names:
            row.append(_bounded(table, name, code))
        rows.append([*row, number(table["distance"][code])])
    columns = ("annotator", "verdict", ">answers", *(f">{name}" for name in names), ">distance")
    title = f"{len(order)} annotators compared with {scores.result.method}"
    print_table(columns, rows, title)
    _print_rest(len(order), top)
    words, counts = np.unique(np.array(verdict.tolist(), dtype=str), return_counts=True)
    counts_in_words = ", ".join(f"{n} {word}" for word, n in zip(words, counts, strict=True))
    print_text(f"Verdicts: {counts_in_words}.")
    for name, sentence in list(scores.evidence.items())[:5]:
        print_text(f"{name}: {sentence}.")


def _bounded(table: Mapping[str, Any], name: str, code: int) -> str:
    value = number(float(table[name][code]), 2)
    if f"{name}_low" not in table or value == "–":
        return value
    low, high = (float(table[f"{name}_{end}"][code]) for end in ("low", "high"))
    return f"{value} [{low:.2f}, {high:.2f}]" if low == low else value


def _print_rest(rows: int, top: int) -> None:
    if rows > top:
        print_text(f"{rows - top} more; --top {rows} shows all, -o FILE writes them.")
