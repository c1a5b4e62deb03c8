"""`dissensus evaluate --dic`: predictions of single annotators against what they said."""

from __future__ import annotations

from typing import Any

from ._shared import note, show_json

__all__ = ["evaluate_annotators"]

_WORDS = {
    "log_loss": "log loss",
    "accuracy": "accuracy, mean over annotators",
    "accuracy_median": "accuracy, median annotator",
    "accuracy_worst_decile": "accuracy, worst tenth of annotators",
    "macro_f1": "macro F1, mean over annotators",
    "ece": "calibration error (ECE)",
    "dic": "DIC",
    "dic_rms": "DIC rms",
    "kappa_correlation": "correlation of kappas",
    "dic_floor": "DIC by noise alone",
    "dic_rms_floor": "DIC rms by noise alone",
    "consensus_accuracy": "accuracy of their vote",
}
_NEED_CHANCES = {"log_loss", "ece"}


def evaluate_annotators(
    pred: str,
    annotations: str,
    min_overlap: int,
    weights: str,
    resamples: int,
    as_json: bool,
    seed: int,
) -> None:
    """Score a table of predictions by item and annotator."""
    from ..errors import DataError
    from ..readers import read
    from ..readers.predictions import read_annotator_predictions
    from ..tendency.dic import dic_interval, with_labels
    from ..tendency.scores import score

    given, crowd = read_annotator_predictions(pred), read(annotations)
    known = given.rows(crowd) >= 0
    if not known.any():
        raise DataError(
            f"none of the {len(crowd)} labels is among the {len(given.annotations)} predictions; "
            "are items and annotators named alike?"
        )
    crowd = crowd.keep(known)
    crowd = crowd.subset(items=crowd.labels_per_item > 0)
    log_probability = given.log_probability(crowd)
    options: dict[str, Any] = {"min_overlap": min_overlap, "weights": weights}
    found = score(crowd, log_probability, seed=seed, **options)
    unknown = _NEED_CHANCES if given.probability is None else set()
    summary = {k: v for k, v in found.summary().items() if k not in unknown}
    predicted = with_labels(crowd, log_probability.argmax(axis=1))
    spans = dic_interval(crowd, predicted, resamples=resamples // 5, seed=seed, **options)
    if as_json:
        told = found.as_dict()
        told["summary"] = {k: v for k, v in told["summary"].items() if k in summary}
        told["intervals"] = {
            name: [None if bound != bound else bound for bound in each[1:]]
            for name, each in spans.items()
        }
        show_json(told)
        return
    _print(summary, spans, len(crowd), crowd.n_items)
    if not known.all():
        note(f"{int((~known).sum())} labels were not predicted, and are left out")


def _print(summary: dict[str, float], spans: dict[str, Any], n_labels: int, n_items: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("score", "value", "95 % interval", title=f"{n_labels} labels on {n_items} items")
    for name, words in _WORDS.items():
        if name not in summary:
            continue
        value, span = summary[name], spans.get(name)
        shown = "–" if value != value else f"{value:.4f}"
        known = span is not None and span.low == span.low
        table.add_row(words, shown, f"{span.low:.4f} to {span.high:.4f}" if known and span else "")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{int(summary['n_pairs_used'])} pairs of annotators with enough common items")
