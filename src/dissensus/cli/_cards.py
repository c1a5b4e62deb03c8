"""What the card of a published data set has beside the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..formats import Reading
    from ..formats.writers_init import Card

_MEASURES = ("percent", "alpha")
_RESAMPLES = 500


def card_for(found: Reading, license_: str | None, *, pseudonyms: bool) -> Card:
    """Return the license, if one is given, and how much annotators agree."""
    from ..metrics import agreement_init as agreement
    from ..formats.writers_init import Card
    from ..pages.terminal import interval, number

    if not len(found.annotations):
        return Card(license_ or "", (), pseudonyms)
    agreed = agreement.agree(
        found.annotations, _MEASURES, multiple=found.kind == "multiple", resamples=_RESAMPLES
    )
    sentences = [f"Items with two labels or more: {agreed.n_paired} of {agreed.n_items}."]
    for one in agreed.estimates:
        between = interval(one.low, one.high, 3)
        more = f", 95 % interval {between}" if between else ""
        scale = f" ({agreed.scale})" if one.measure == "alpha" else ""
        title = agreement.measures[one.measure].title.replace("percent", "Percent agreement")
        sentences.append(f"{title}{scale}: {number(one.value)}{more}.")
    return Card(license_ or "", tuple(sentences), pseudonyms)
