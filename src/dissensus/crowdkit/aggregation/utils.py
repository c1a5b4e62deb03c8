"""Helpers of crowd-kit that scripts call: accuracies, shares and comparisons of labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .base import ANSWERS, TableError, require

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "evaluate",
    "evaluate_equal",
    "evaluate_in",
    "get_accuracy",
    "get_most_probable_labels",
    "normalize_rows",
]


def get_accuracy(
    data: pd.DataFrame, true_labels: pd.Series, by: str | None = None
) -> float | pd.Series:
    """Return the share of answers that are right, in all or by a column.

    `true_labels` may have several rows for a task: an answer is right if it is one of them. A
    worker's equal answers to a task count once, `weight` times if there is such a column.
    """
    answers = require(data, [*ANSWERS, *({"weight"} & set(data.columns))])
    judged = answers.merge(true_labels.rename("true_label"), left_on="task", right_index=True)
    judged = judged[judged["true_label"].notna()].reset_index(drop=True)
    if "weight" not in judged:
        judged["weight"] = 1.0
    judged["score"] = judged["weight"] * (judged["label"] == judged["true_label"])
    judged = judged.sort_values("score", kind="stable").drop_duplicates(ANSWERS, keep="last")
    if by is None:
        return judged["score"].sum() / judged["weight"].sum() if len(judged) else float("nan")
    if by not in judged:
        raise TableError(f"no column {by!r}; accuracies are by {', '.join(judged.columns[:-1])}")
    sums = judged.groupby(by)[["score", "weight"]].sum()
    return (sums["score"] / sums["weight"]).rename(None)


def get_most_probable_labels(proba: pd.DataFrame) -> pd.Series:
    """Return the most probable label of every task; of tied ones, that of the first column."""
    import pandas as pd

    return proba.idxmax(axis="columns") if proba.size else pd.Series([], dtype="O")


def normalize_rows(scores: pd.DataFrame) -> pd.DataFrame:
    """Return shares of the sums of rows."""
    return scores.div(scores.sum(axis=1), axis=0)


def evaluate_in(row: pd.Series) -> int:
    """Return 1 if the prediction is among the true labels, otherwise 0."""
    return int(row["label_pred"] in row["label_true"])


def evaluate_equal(row: pd.Series) -> int:
    """Return 1 if the prediction is the true label, otherwise 0."""
    return int(row["label_pred"] == row["label_true"])


def evaluate(
    df_true: pd.DataFrame,
    df_pred: pd.DataFrame,
    evaluate_func: Callable[[pd.Series], Any] = evaluate_in,
) -> float:
    """Return the mean over tasks of a function of `label_true` and `label_pred`."""
    merged = df_true.merge(df_pred, on="task", suffixes=("_true", "_pred"))
    if len(merged) != len(df_true):
        raise TableError(f"{len(df_true)} tasks have a true label, {len(merged)} a prediction, too")
    return float(merged.apply(evaluate_func, axis=1).mean())
