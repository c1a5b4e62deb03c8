"""Videos and sounds as inputs: a few pictures of each, evenly spaced.

A video is a few of its frames. A recording becomes a log-mel spectrogram (mono, 16 kHz, windows of
25 ms every 10 ms, 64 bands), cut into equal parts of time. Each part is an image, low tones at the
bottom, that an image encoder takes as the frame of a video. Of videos with sound, the frames of
the sound follow those of the picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ...base.arrays import Floats
from ...errors import DataError, OptionError, install_command
from .inputs import Files, as_pixels

RATE = 16_000  # samples of a second
_WINDOW, _HOP = 400, 160  # samples
_BANDS = 64
_RANGE = 80  # decibels below full scale that are silence


@dataclass(frozen=True, eq=False)
class Videos(Files):
    """Video files, of which `frames` frames are used."""

    frames: int = 16
    kind: ClassVar[str] = "videos"
    readers: ClassVar[int] = 2

    def contents(self) -> Iterable[bytes]:
        """Return a hash of every file, and the number of frames."""
        return [content + str(self.frames).encode() for content in super().contents()]

    def load(self, path: Path, size: int) -> Tensor:
        """Return the frames of a video: (frame, 3, size, size), from 0 to 1."""
        return frames_of(path, self.frames, size)


@dataclass(frozen=True, eq=False)
class Sounds(Videos):
    """Sound files, of which `frames` parts of equal length are seen as spectrograms."""

    kind: ClassVar[str] = "sounds"

    def load(self, path: Path, size: int) -> Tensor:
        """Return spectrograms of the parts of a sound: (frame, 3, size, size), from 0 to 1."""
        return sound_frames(wave_of(path), self.frames, size)


@dataclass(frozen=True, eq=False)
class VideosWithSound(Videos):
    """Video files with their sound: `frames` frames of the picture, then as many of the sound."""

    kind: ClassVar[str] = "videos with sound"

    def load(self, path: Path, size: int) -> Tensor:
        """Return frames of picture and sound: (frame, 3, size, size), from 0 to 1."""
        sound = sound_frames(wave_of(path), self.frames, size)
        return torch.cat([super().load(path, size), sound])


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
                    square = frame.reformat(width=size, height=size, format="rgb24")
                    last = frames[number] = as_pixels(np.array(square.to_ndarray()))
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


def wave_of(path: Path) -> Floats:
    """Return the sound of a file, mono at 16 kHz, from -1 to 1: (sample)."""
    try:
        import av
    except ImportError:
        raise OptionError(f"sound needs PyAV: {install_command('video')}") from None
    try:
        with av.open(str(path)) as file:
            if not file.streams.audio:
                raise DataError(f"{path}: no sound in it, only pictures")
            resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
            frames = [*file.decode(audio=0), None]  # None: what is left in the resampler
            parts = [out.to_ndarray()[0] for frame in frames for out in resampler.resample(frame)]
    except (av.FFmpegError, OSError, ValueError) as problem:
        raise DataError(f"{path}: not a readable sound ({problem})") from None
    if not sum(map(len, parts)):
        raise DataError(f"{path}: no sound in it")
    return np.concatenate(parts).astype(np.float64)


def sound_frames(wave: Floats, count: int, size: int) -> Tensor:
    """Return spectrograms of equal parts of a sound: (frame, 3, size, size), from 0 to 1."""
    picture = torch.from_numpy(log_mel(wave)).float()  # (band, window)
    ends = np.linspace(0, picture.shape[1], count + 1)
    frames = []
    for start, end in zip(ends[:-1].astype(int), np.ceil(ends[1:]).astype(int), strict=True):
        part = picture.flip(0)[None, None, :, start : max(end, start + 1)]
        frames.append(functional.interpolate(part, (size, size), mode="bilinear", antialias=True))
    return torch.cat(frames).expand(-1, 3, -1, -1)


def log_mel(wave: Floats) -> Floats:
    """Return the log-mel spectrogram of a sound, 1 at full scale, 0 at silence: (band, window)."""
    from scipy.signal import stft

    wave = np.pad(wave, (0, max(_WINDOW - len(wave), 0)))
    _, _, spectrum = stft(
        wave, RATE, nperseg=_WINDOW, noverlap=_WINDOW - _HOP, boundary=None, padded=False
    )
    power = _filters() @ np.square(2 * np.abs(spectrum))  # a full sine has power 1
    decibels = 10 * np.log10(np.maximum(power, 10 ** (-_RANGE / 10)))
    return np.minimum(1 + decibels / _RANGE, 1)


@cache
def _filters() -> Floats:
    """Return triangles over frequencies, evenly spaced in mel: (band, frequency)."""
    most = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, most, _BANDS + 2) / 2595) - 1)  # in Hz
    frequency = np.linspace(0, RATE / 2, _WINDOW // 2 + 1)
    low, center, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rise, fall = (frequency - low) / (center - low), (high - frequency) / (high - center)
    triangles = np.maximum(np.minimum(rise, fall), 0)
    # The lowest bands are narrower than the distance of frequencies: take the nearest.
    nearest = np.abs(frequency - center) == np.abs(frequency - center).min(axis=1, keepdims=True)
    return np.where(triangles.any(axis=1, keepdims=True), triangles, nearest.astype(float))
