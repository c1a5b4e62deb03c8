"""A measure of agreement: chance agreement if everybody gave the class that is given most."""

from __future__ import annotations

from typing import Any

import numpy as np

from dissensus.metrics.coefficients import Measure


def expected_of_mode(shares: Any, difference: Any) -> tuple[Any, Any]:
    """Return the difference of all classes from the most common, and what every class adds."""
    mode = np.eye(shares.shape[-1])[shares.argmax(axis=-1)]
    toward = difference.toward(mode)
    return (shares * toward).sum(axis=-1), toward


MEASURE = Measure(
    "called-otherwise", "Chance agreement with the most common class.", expected=expected_of_mode
)
