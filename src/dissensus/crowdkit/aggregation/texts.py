"""Texts: word by word with ROVER, or by their embeddings with RASA and HRRASA.

ROVER aligns the texts of a task one after the other to a row of slots, with as few insertions,
deletions and substitutions as can be, and takes the word with most votes from every slot.

    J. G. Fiscus. A post-processing system to yield reduced word error rates: recognizer output
    voting error reduction (ROVER). ASRU 1997. doi:10.1109/ASRU.1997.659110
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...base.arrays import Floats
from ...base.progress import progress_bar
from .base import require
from .embeddings import HRRASA, RASA, gleu

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ROVER", "TextHRRASA", "TextRASA"]

_Slots = list[Counter[str]]  # votes for every word; "" is none


@dataclass
class ROVER:
    """The words with most votes; of tied ones the longest, then the last in sorted order.

    Our method `rover` differs: it aligns texts from the medoid outwards and weighs annotators.
    """

    tokenizer: Callable[[str], list[str]]
    detokenizer: Callable[[list[str]], str]
    silent: bool = True

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and text."""
        import pandas as pd

        texts = require(data, ["task", "worker", "text"]).groupby("task")["text"]
        joined = {}
        with progress_bar("ROVER") as bar:
            for n_done, (task, texts_of_task) in enumerate(texts, 1):
                words = _most_votes([self.tokenizer(text) for text in texts_of_task])
                joined[task] = self.detokenizer(words)
                if not self.silent:
                    bar(n_done, len(texts))
        index = pd.Index(list(joined), name="task")
        self.texts_ = pd.Series(list(joined.values()), index=index, name="agg_text")
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the text of every task."""
        return self.fit(data).texts_


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
        true_embeddings = None if true_objects is None else true_objects.map(self.encoder)
        model = self._model().fit(answers, true_embeddings)._apply(answers)
        vars(self).update(
            {name: value for name, value in vars(model).items() if name.endswith("_")}
        )
        self.scores_, closest = model.scores_, model.embeddings_and_outputs_
        self.texts_ = closest["output"].rename("agg_text")
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
            n_iter=self.n_iter,
            tol=self.tol,
            lambda_emb=self.lambda_emb,
            lambda_out=self.lambda_out,
            alpha=self.alpha,
            calculate_ranks=self.calculate_ranks,
            output_similarity=self.output_similarity,
        )


def _most_votes(texts: list[list[str]]) -> list[str]:
    """Return the words with most votes in the slots that texts are aligned to."""
    slots: _Slots = [Counter([word]) for word in texts[0]]
    for n_texts, words in enumerate(texts[1:], 1):
        slots = _align(slots, words, n_texts)
    most_voted = (max(slot, key=lambda word: (slot[word], len(word), word)) for slot in slots)
    return [word for word in most_voted if word]


def _align(slots: _Slots, words: list[str], n_texts: int) -> _Slots:
    """Return the slots of `before` texts with those of one more text added."""
    cost = np.zeros((len(words) + 1, len(slots) + 1))
    cost[:, 0] = np.arange(len(words) + 1)
    cost[0] = np.arange(len(slots) + 1)
    for row, word in enumerate(words, 1):
        for column, slot in enumerate(slots, 1):
            cost[row, column] = min(_moves(cost, row, column, word, slot))
    out: _Slots = []
    row, column = len(words), len(slots)
    while row or column:
        move = 1 if not row else 2 if not column else 0
        if row and column:
            moves = _moves(cost, row, column, words[row - 1], slots[column - 1])
            move = moves.index(min(moves))
        slot = Counter({"": n_texts}) if move == 2 else slots[column - 1].copy()
        slot["" if move == 1 else words[row - 1]] += 1
        out.append(slot)
        row, column = row - (move != 1), column - (move != 2)
    return out[::-1]


def _moves(
    cost: Floats, row: int, column: int, word: str, slot: Counter[str]
) -> tuple[float, float, float]:
    """Return the cost of a word in the slot, of no word in it, and of a slot of its own."""
    return (
        cost[row - 1, column - 1] + (word not in slot),
        cost[row, column - 1] + ("" not in slot),
        cost[row - 1, column] + 1,
    )
