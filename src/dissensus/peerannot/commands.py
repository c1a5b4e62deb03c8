"""What peerannot's command line calls otherwise, and what of it has no effect here.

Our command of the same name takes these beside its own options; help does not show them.
"""

from __future__ import annotations

VERBS = ("agginfo", "identificationinfo", "modelinfo")  # that list what its other verbs take
_Flags = dict[str, tuple[str, ...]]  # our parameter → flags, without dashes
_METADATA: _Flags = {"metadata": ("metadata_path",)}
_NETWORK: _Flags = {"encoder": ("model",), "epochs": ("n-epochs",)}
SPELLINGS: dict[str, _Flags] = {  # of verbs
    "aggregate": _METADATA | {"answers": ("answers-file",)},
    "aggregate-deep": _METADATA | _NETWORK,
    "train": _METADATA | _NETWORK,
    "identify": _METADATA | _NETWORK | {"answers": ("labels",), "rounds": ("maxiter-DS",)},
    "simulate": {"n_annotators": ("n-worker",), "n_items": ("n-task",)},
}
# Flags that verbs with a network take, and why they change nothing here.
WITHOUT_EFFECT = {
    "n-params": "the encoder sees the inputs",
    "num-workers": "threads read the inputs",
}
# Parameter → what its flag means without a value, as in older versions.
BARE = {"scheduler": "multistep"}
