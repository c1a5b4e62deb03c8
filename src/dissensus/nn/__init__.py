"""The ground that all networks here stand on: inputs, encoders, ragged batches, one training loop.

    files ─read_inputs─▶ inputs ─encoder─▶ features ─Examples─▶ batches ─train─▶ History

Nothing outside `nn` and what stands on it imports torch.
"""

from __future__ import annotations

from ..errors import OptionError

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise OptionError("networks need torch: pip install 'dissensus[deep]'") from None

from .augment import Augment
from .batches import Batch, Batches, Examples, LabelledInputs, Source
from .encoders import Encoder, Tokens, encoder_for, encoders
from .estimator import Estimator
from .feature_cache import cached_features
from .features import Features, TokenFeatures, features_of
from .inputs import Arrays, Images, Inputs, Texts, as_inputs
from .learner import Learner
from .reading import folder_truth, read_inputs, read_others
from .settings import Training
from .tables import Table
from .training import History, train
from .validation_split import hold_out
from .videos import Videos

__all__ = [
    "Arrays",
    "Augment",
    "Batch",
    "Batches",
    "Encoder",
    "Estimator",
    "Examples",
    "Features",
    "History",
    "Images",
    "Inputs",
    "LabelledInputs",
    "Learner",
    "Source",
    "Table",
    "Texts",
    "TokenFeatures",
    "Tokens",
    "Training",
    "Videos",
    "as_inputs",
    "cached_features",
    "encoder_for",
    "encoders",
    "features_of",
    "folder_truth",
    "hold_out",
    "read_inputs",
    "read_others",
    "train",
]
