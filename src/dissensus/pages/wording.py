"""Numbers, shares, intervals and names in words: every sentence and cell is written with these.

The words for measures and scores stand here once, for every view: `titles`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_NAMED = 3  # names in one sentence

# What measures are called in a family: on a page, and on a terminal where that has less room.
_TITLES: Mapping[str, Mapping[str, str | tuple[str, str]]] = {
    "agreement": {  # of labels
        "percent": ("pairs that agree", "percent"),
        "alpha": "Krippendorff's alpha",
        "fleiss": "Fleiss' kappa",
        "ac1": "Gwet's AC1",
        "ac2": "Gwet's AC2",
        "brennan-prediger": "Brennan–Prediger",
        "randolph": "Randolph's kappa",
        "conger": "Conger's kappa",
        "cohen": "Cohen's kappa",
        "scott": "Scott's pi",
    },
    "distances": {  # agreement of answers of other kinds
        "alpha": "alpha",
        "observed": ("distance within items", "observed distance"),
        "expected": ("distance between items", "expected distance"),
        "token_alpha": "alpha of tokens",
        "span_f1": ("F1 of pairs of annotators, same spans", "F1 of pairs of annotators"),
        "gamma": ("gamma, mean over pairs", "pairwise gamma"),
        "f1_50": ("F1 of pairs of answers, overlap above one half", "F1 at .5, mean over pairs"),
        "iou": ("intersection over union of pairs", "intersection over union, mean over pairs"),
        "jaccard_alpha": ("alpha with the Jaccard distance", "alpha, Jaccard"),
        "option_alpha": "alpha of options, mean",
    },
    "scores": {  # against the truth
        "accuracy": ("accuracy (labelled right)", "accuracy (expected over ties)"),
        "accuracy_as_labelled": "accuracy of the labels as given",
        "macro_f1": ("macro F1 (mean over classes)", "macro F1"),
        "log_loss": ("log loss of the truth", "log loss"),
        "brier": ("Brier score (squared error of probabilities)", "Brier score"),
        "ece": ("calibration error (confidence against accuracy)", "calibration error (ECE)"),
        "distance": "mean distance in steps",
        "mae": "mean absolute error",
        "rmse": "root mean squared error",
        "pearson": "correlation (Pearson)",
        "spearman": ("correlation (Spearman)", "correlation of ranks (Spearman)"),
        "f1": ("F1, exactly equal", "F1"),
        "f1_50": ("F1 at an overlap of one half", "F1 at IoU .5"),
        "precision": "precision",
        "recall": "recall",
        "overlap_f1": ("F1 at an overlap of one half", "F1 at IoU .5"),
        "f1_75": ("F1 at an overlap of three quarters", "F1 at IoU .75"),
        "iou": "intersection over union",
        "wer": "word error rate",
        "tau": "Kendall's tau",
        "jaccard": "Jaccard index",
        "exact": "exactly equal",
    },
    "compared": {  # scores of methods side by side, where there is less room
        "accuracy": "accuracy %",
        "distance": "steps\noff",
        "mae": "mean absolute error",
    },
    "soft scores": {  # of distributions of labels
        "manhattan": "Manhattan distance",
        "jensen_shannon": "Jensen-Shannon divergence (bits)",
        "unbiased_squared": "squared distance, unbiased",
        "cross_entropy": "cross-entropy (nats)",
        "kl": "Kullback-Leibler (nats)",
        "wasserstein": "Wasserstein distance (steps)",
        "entropy_gap": "distance of entropies (bits)",
        "entropy_pearson": "correlation of entropies",
        "entropy_spearman": "… of their ranks",
        "calibration_error": "calibration error",
        "expected_distance": "expected distance",
        "energy_distance": "energy distance",
        "perspectivist_error": "error against everybody",
        "accuracy": "accuracy against the majority",
        "macro_f1": "macro F1 against the majority",
    },
    "judges": {  # of models beside people
        "agreement": "with a person",
        "people": "two people",
        "kappa": "kappa",
        "accuracy": "accuracy",
        "bias": "bias",
        "absolute_error": "mean absolute error",
        "correlation": "correlation",
    },
    "annotators": {  # of predictions of every annotator
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
        "error_rate": "error rate, mean over items",
        "anad": "normalized distance (ANAD)",
    },
}


def titles(family: str, *, short: bool = False) -> dict[str, str]:
    """Return what the measures of a family are called, in the order in which they are shown.

    Families are `agreement`, `distances`, `scores`, `compared`, `soft scores`, `judges` and
    `annotators`.

    >>> titles("scores")["f1_50"], titles("scores", short=True)["f1_50"]
    ('F1 at an overlap of one half', 'F1 at IoU .5')
    """
    return {
        name: title if isinstance(title, str) else title[short]
        for name, title in _TITLES[family].items()
    }


def amount(count: int, noun: str = "", total: int | None = None) -> str:
    """Return a count with its noun, and of how many unless these are all.

    >>> amount(1, "item"), amount(2140, "label"), amount(20480, "class"), amount(20480)
    ('1 item', '2140 labels', '20\u202f480 classes', '20\u202f480')
    >>> amount(500, "item", 2140)
    '500 of 2140 items'
    """
    if total is not None and count < total:
        return f"{count} of {amount(total, noun)}"
    number = f"{count:,}".replace(",", "\u202f") if count >= 10_000 else str(count)
    if noun and count != 1:
        noun += "es" if noun.endswith(("s", "x")) else "s"
    return f"{number} {noun}".rstrip()


def percent(share: float) -> str:
    """Return a share as people write it; one digit more near the ends.

    >>> percent(0.914), percent(0.9987), percent(0.99999), percent(1.0), percent(math.nan)
    ('91%', '99.9%', 'above 99.9%', '100%', '–')
    """
    if math.isnan(share):
        return "–"
    if not 0 < min(share, 1 - share) < 0.01:
        return f"{share:.0%}"
    if min(share, 1 - share) >= 0.0005:
        return f"{share:.1%}"
    return "below 0.1%" if share < 0.5 else "above 99.9%"


def listed(names: list[str]) -> str:
    """Return names as a list in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d", "e"])
    ('a, b and c', 'a, b, c and 2 more')
    """
    if len(names) > _NAMED + 1:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def formatted(value: float, form: str | Callable[[float], str] = ".4g") -> str:
    """Return a number as text, a dash for NaN.

    >>> formatted(0.25, ".0%"), formatted(math.nan)
    ('25%', '–')
    """
    if math.isnan(value):
        return "–"
    return form(value) if callable(form) else f"{value:{form}}"


def interval(low: float, high: float, form: str = "z.2f") -> str:
    """Return the ends of an interval as a text, empty where they are undefined."""
    return f"{low:{form}} to {high:{form}}" if low == low and high == high else ""


def with_interval(estimate: Any, form: str | Callable[[float], str] = ".2f") -> tuple[str, str]:
    """Return an estimate and its interval as texts; a dash and nothing where there is none."""
    value, low, high = (
        formatted(bound, form) for bound in (estimate.value, estimate.low, estimate.high)
    )
    return value, "" if "–" in (value, low, high) else f"{low} to {high}"


def quoted(name: Any) -> str:
    """Return a name for a sentence: short, and with odd spaces made visible."""
    text = str(name)
    short = text if len(text) <= 40 else f"{text[:39]}…"
    return short if short.isprintable() and short == short.strip() else repr(short)


def many(count: int, word: str) -> str:
    """Return a number and a noun in singular or plural.

    >>> many(1, "class"), many(2, "class"), many(0, "label")
    ('1 class', '2 classes', '0 labels')
    """
    ending = "es" if word.endswith("s") else "s"
    return f"{count} {word}{'' if count == 1 else ending}"


def verb(count: int, word: str) -> str:
    """Return a verb in singular or plural.

    >>> verb(1, "give"), verb(2, "give"), verb(1, "have"), verb(1, "are")
    ('gives', 'give', 'has', 'is')
    """
    if count != 1:
        return word
    return {"have": "has", "are": "is"}.get(word, f"{word}s")


def first_quoted(names: Iterable[Any], most: int = 3) -> tuple[str, ...]:
    """Return the first names."""
    return tuple(quoted(name) for _, name in zip(range(most), names, strict=False))
