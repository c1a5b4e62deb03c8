"""Videos as inputs: a few frames of each, evenly spaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..._extras import install_command
from ...errors import DataError, OptionError
from .inputs import Files, as_pixels


@dataclass(frozen=True, eq=False)
class Videos(Files):
    """Video files, of which `frames` frames are used."""

    frames: int = 16
    kind: ClassVar[str] = "videos"
    readers: ClassVar[int] = 2

    def contents(self) -> Iterable[bytes]:
        """Return a hash of every file, and the number of frames."""
        return [each + str(self.frames).encode() for each in super().contents()]

    def load(self, path: Path, size: int) -> Tensor:
        """Return the frames of a video: (frame, 3, size, size), from 0 to 1."""
        return frames_of(path, self.frames, size)


def frames_of(path: Path, count: int, size: int) -> Tensor:
    """Return the middle frames of equal parts of a video: (frame, 3, size, size), from 0 to 1.

    A video of fewer frames repeats some of them.
    """
    try:
        import av
    except ImportError:
        raise OptionError(f"videos need PyAV: {install_command('video')}") from None
    try:
        with av.open(str(path)) as file:
            if not file.streams.video:
                raise DataError(f"{path}: no pictures in it, only sound")
            total = file.streams.video[0].frames or _count(path)
            numbers = [int((position + 0.5) * total / count) for position in range(count)]
            frames: dict[int, Any] = {}
            last = None
            for number, frame in enumerate(file.decode(video=0)):
                if number in numbers:
                    small = frame.reformat(width=size, height=size, format="rgb24")
                    last = frames[number] = as_pixels(np.array(small.to_ndarray()))
                if number >= numbers[-1]:
                    break
    except (av.FFmpegError, OSError, ValueError) as problem:
        raise DataError(f"{path}: not a readable video ({problem})") from None
    if last is None:
        raise DataError(f"{path}: no frames in it")
    # The length in the header may be a frame or two too long.
    return torch.stack([frames.get(number, last) for number in numbers])


def _count(path: Path) -> int:
    """Return the number of frames of a file without it in the header."""
    import av

    with av.open(str(path)) as file:
        return max(sum(packet.size > 0 for packet in file.demux(video=0)), 1)
