"""Every picture of a report, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .agreement_figures import confusion_figure, pairs_figure
from .annotator_figures import annotators_figure
from .charts import Figure
from .label_figures import calibration_figure, classes_figure, confidence_figure
from .method_figures import budget_figure, methods_figure
from .tendency_section import foresight_figure

if TYPE_CHECKING:
    from .report import Report

__all__ = ["Figure", "figures"]


def figures(report: Report) -> dict[str, Figure]:
    """Return every picture for which there are numbers."""
    found = {
        "classes": classes_figure(report),
        "confidence": confidence_figure(report),
        "calibration": calibration_figure(report),
        "annotators": annotators_figure(report.annotator_scores),
        "confusion": confusion_figure(report),
        "agreement": pairs_figure(report.pairs, report.clusters),
        "foresight": None if report.foresight is None else foresight_figure(report.foresight),
        "methods": None if report.comparison is None else methods_figure(report.comparison),
        "budget": None if report.plan is None else budget_figure(report.plan),
    }
    return {name: one for name, one in found.items() if one is not None}
