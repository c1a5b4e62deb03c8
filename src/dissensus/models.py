"""peerannot's models under its module path, so that `peerannot` may be replaced by `dissensus`."""

from .peerannot.models import *  # noqa: F403
from .peerannot.models import __all__ as __all__
