"""Texts by their embeddings: RASA and HRRASA behind an encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from .._table import require
from .embeddings import HRRASA, RASA, gleu

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TextHRRASA", "TextRASA"]


@dataclass
class TextRASA:
    """The text nearest to the weighted mean; weights as in RASA.

    What RASA keeps after a fit, as `skills_`, is here, too.
    """

    encoder: Callable[[str], Any]
    n_iter: int = 100
    tol: float = 1e-5
    alpha: float = 0.05

    def _model(self) -> RASA:
        return RASA(self.n_iter, self.tol, self.alpha)

    def fit(self, data: pd.DataFrame, true_objects: pd.Series | None = None) -> Self:
        """Fit to a table of task, worker and text, with true texts by task if known."""
        answers = require(data, ["task", "worker", "text"]).rename(columns={"text": "output"})
        answers["embedding"] = answers["output"].map(self.encoder)
        known = None if true_objects is None else true_objects.map(self.encoder)
        model = self._model().fit(answers, known)._apply(answers)
        vars(self).update({name: one for name, one in vars(model).items() if name.endswith("_")})
        self.scores_, chosen = model.scores_, model.embeddings_and_outputs_
        self.texts_ = chosen["output"].rename("agg_text")
        return self

    def fit_predict(self, data: pd.DataFrame, true_objects: pd.Series | None = None) -> pd.Series:
        """Return the text of every task."""
        return self.fit(data, true_objects).texts_

    def fit_predict_scores(
        self, data: pd.DataFrame, true_objects: pd.Series | None = None
    ) -> pd.DataFrame:
        """Return the distance of every text to the weighted mean."""
        return self.fit(data, true_objects).scores_


@dataclass
class TextHRRASA(TextRASA):
    """The text nearest to the weighted mean; weights as in HRRASA."""

    encoder: Callable[[str], Any]
    n_iter: int = 100
    tol: float = 1e-5
    lambda_emb: float = 0.5
    lambda_out: float = 0.5
    alpha: float = 0.05
    calculate_ranks: bool = False
    output_similarity: Callable[[Any, Any], float] = gleu

    def _model(self) -> RASA:
        return HRRASA(
            self.n_iter,
            self.tol,
            self.lambda_emb,
            self.lambda_out,
            self.alpha,
            self.calculate_ranks,
            self.output_similarity,
        )
