"""Simulations as files: a peerannot folder with its arrays, or tables of answers and truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..annotations import Annotations
from ..errors import OptionError
from ..readers.folders import save_array, write_folder, write_notes
from ..simulation import Simulation
from .writing import write, write_truth

__all__ = ["write_simulation"]


def write_simulation(made: Simulation, folder: str | Path, kind: str = "peerannot") -> None:
    """Write annotations, truth, matrices and every option to a folder."""
    target = Path(folder)
    arrays = {name: np.asarray(values) for name, values in made.extras.items()}
    if made.crowd.confusion is not None:
        arrays["matrices"] = made.crowd.confusion
    if kind == "peerannot":
        if not isinstance(made.annotations, Annotations):
            raise OptionError("peerannot's layout holds no numbers; use --format table")
        arrays["ground_truth"] = made.truth
        write_folder(target, made.annotations, notes=made.options, arrays=arrays)
        return
    write(made.annotations, target / f"answers.{kind}")
    write_truth(made.truths, target / f"truth.{kind}")
    write_notes(target / "metadata.json", {"name": target.resolve().name, **made.options})
    for name, array in arrays.items():
        save_array(target / f"{name}.npy", array)
