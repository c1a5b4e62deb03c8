"""Inputs, encoders, features, ragged batches, the training loop, and the base of estimators.

    files ─read_inputs─▶ inputs ─encoder─▶ features ─Examples─▶ batches ─train─▶ History

Only `nn` and the packages above it import torch.
"""

from __future__ import annotations

from ...errors import OptionError, install_command

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise OptionError(f"networks need torch: {install_command('deep')}") from None

from .batches import Batch, Examples, LabelledInputs, Table, hold_out
from .encoders import Encoder, encoder_for
from .encoding import Several
from .estimator import Estimator
from .features import Features, TokenFeatures, cached_features, features_of
from .inputs import Arrays, Augment, Images, Inputs, Texts, as_inputs
from .media import Sounds, Videos, VideosWithSound
from .reading import folder_truth, read_inputs
from .settings import Learner, Training
from .training import train

__all__ = [
    "Arrays",
    "Augment",
    "Batch",
    "Encoder",
    "Estimator",
    "Examples",
    "Features",
    "Images",
    "Inputs",
    "LabelledInputs",
    "Learner",
    "Several",
    "Sounds",
    "Table",
    "Texts",
    "TokenFeatures",
    "Training",
    "Videos",
    "VideosWithSound",
    "as_inputs",
    "cached_features",
    "encoder_for",
    "features_of",
    "folder_truth",
    "hold_out",
    "read_inputs",
    "train",
]
