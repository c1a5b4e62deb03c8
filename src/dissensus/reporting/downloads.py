"""What the page of a report makes into files: labels, the list to relabel, and whom to ask what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report import Report

__all__ = ["labels_to_download", "plan_to_download", "relabel_to_download"]

MOST_BYTES = 4_000_000  # of labels
MOST_DOUBTFUL = 10_000  # items to label again


def labels_to_download(report: Report) -> dict[str, list[Any]] | None:
    """Return all labels for a download, where they are not too many."""
    annotations, result = report.annotations, report.result
    if sum(map(len, annotations.items.tolist())) + 8 * annotations.n_items > MOST_BYTES:
        return None
    confidence = result.confidence.round(4)
    return {
        "item": annotations.items.tolist(),
        "label": result.label.tolist(),
        "confidence": confidence.tolist(),
    }


def plan_to_download(report: Report) -> list[list[Any]]:
    """Return whom to ask what, with what the answer is expected to tell."""
    if report.plan is None:
        return []
    table = report.plan.table
    columns = table["item"], table["annotator"], table["gain"].round(4)
    return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def relabel_to_download(report: Report) -> list[list[Any]]:
    """Return the items to label again, the most doubtful first."""
    annotations, result = report.annotations, report.result
    cause, labels = report.item_scores.cause, result.labels
    return [
        [
            annotations.items[item],
            labels[item],
            round(float(result.confidence[item]), 4),
            cause[item],
        ]
        for item in report.doubtful[:MOST_DOUBTFUL].tolist()
    ]
