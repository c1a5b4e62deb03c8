"""The shared data sets whose truth is known, at least in part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dissensus import Annotations

__all__ = ["DATA", "SETS", "load"]

DATA = Path(__file__).parents[1].parent / "shared" / "data"
SETS = [
    *("bluebirds", "bm", "cifar10s", "d_possent", "d_product", "dog"),
    *("face4", "labelme", "mbic", "medrel_treat", "music", "reuters_crowd"),
    *("rte", "s_adult", "s_rel", "sentiment_polarity", "sp_amt", "trec2011"),
    *("trec_binary", "weather_amt", "weather_cf", "zencrowd_in", "zencrowd_us"),
]


def load(name: str) -> tuple[Annotations, dict[str, str]]:
    """Return the annotations of a set, and the truth."""
    from dissensus import read, read_truth

    if not DATA.exists():
        raise SystemExit("the shared data sets are not beside the project")
    return read(DATA / name / "answers.csv.gz"), read_truth(DATA / name / "truth.csv.gz")
