"""The usual words for numbers of agreement.

J. R. Landis, G. G. Koch. The measurement of observer agreement for categorical data.
Biometrics 33(1), 1977. doi:10.2307/2529310
"""

from __future__ import annotations

import math

__all__ = ["in_words"]

# Below the number, the word.
_WORDS = {
    0.0: "poor",
    0.2: "slight",
    0.4: "fair",
    0.6: "moderate",
    0.8: "substantial",
    math.inf: "almost perfect",
}


def in_words(alpha: float) -> str:
    """Return the usual word for an alpha: below 0 poor, 0.2 slight, and so on in steps of 0.2.

    >>> in_words(0.7), in_words(math.nan)
    ('substantial', 'undefined')
    """
    return next((word for limit, word in _WORDS.items() if alpha < limit), "undefined")
