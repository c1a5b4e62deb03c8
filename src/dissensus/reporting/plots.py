"""One chart of a result: what its `plot()` returns."""

from __future__ import annotations

from typing import Any

from ..agreement.result import Agreement
from ..comparison import Comparison
from ..errors import DataError
from ..identification import AnnotatorScores
from ..meta.view import EmbeddingView
from ..planning import Plan
from ..result import Aggregation
from .agreement_figures import agreement_figure
from .charts import Figure
from .few_shot_figures import embedding_figure
from .figures import annotators_figure, confidence_figure
from .method_figures import curve_figure, methods_figure


def plot(result: Any) -> Figure:
    """Return the chart of a result.

    >>> from dissensus import aggregate, demo
    >>> plot(aggregate(demo()[0], "majority")).title
    'Confidence in the labels'
    """
    figure, nothing = None, f"there is no chart of a {type(result).__name__}"
    match result:
        case Aggregation():
            figure = confidence_figure(result)
            nothing = "there is nothing to draw: " + " ".join(result.unidentifiable or ())
        case Agreement():
            figure = agreement_figure(result)
            nothing = "there is nothing to draw: no measure has a value"
        case AnnotatorScores():
            figure = annotators_figure(result)
            nothing = "there is nothing to draw: no annotator can be compared with the others"
        case Comparison():
            figure = methods_figure(result)
            nothing = "there is nothing to draw: no item has two labels"
        case Plan():
            figure = curve_figure(result)
            nothing = "there is no curve to draw: plan with draws=10"
        case EmbeddingView():
            figure = embedding_figure(result)
    if figure is None:
        raise DataError(nothing)
    return figure
