"""Inputs, encoders, features, ragged batches, the training loop, and the base of estimators.

    files ─read_inputs─▶ inputs ─encoder─▶ features ─Examples─▶ batches ─train─▶ History

Only `nn` and the packages above it import torch.
"""

from __future__ import annotations

from ...errors import install_command
from ...errors import OptionError

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise OptionError(f"networks need torch: {install_command('deep')}") from None

from .inputs import Augment
from .batches import Batch, Examples, LabelledInputs, hold_out
from .encoders import Encoder, encoder_for
from .estimator import Estimator
from .features import cached_features
from .features import Features, TokenFeatures, features_of
from .inputs import Arrays, Images, Inputs, Texts, as_inputs
from .settings import Learner
from .reading import folder_truth, read_inputs
from .settings import Training
from .encoding import Several
from .media import Sounds, VideosWithSound
from .batches import Table
from .training import train
from .media import Videos

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
