"""Inputs: arrays, texts, images, videos or sounds, one per item, in the order of the items.

An encoder prepares `Inputs` for its network: images of one size, token codes. Images are loaded
batch by batch, and may be augmented in training: random flips, crops and colours, with torch's
random numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from ...answers.annotations import Integers
from ...base.arrays import Array
from ...base.feature_store import KEY
from ...errors import DataError, OptionError, install_command
from ...params import NonNegative, Probability, Settings

_DENSE = 4 * 2**30  # bytes of a sparse matrix: features are scaled, so none stays zero
VIDEO_ENDINGS = {".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"}
SOUND_ENDINGS = {".aac", ".aif", ".aiff", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav"}


@dataclass(frozen=True, eq=False)
class Inputs(ABC):
    """One input per item."""

    kind: ClassVar[str]

    @property
    def description(self) -> str:
        """The kind, or the kinds by name."""
        return self.kind

    @property
    def shape(self) -> tuple[int, ...]:
        """Axes of one input, where all have the same; otherwise empty."""
        return ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, items: Integers) -> Inputs:
        """Return the inputs of items, by code."""

    @abstractmethod
    def contents(self) -> Iterable[bytes]:
        """Return the content of every input, or a hash of it."""

    def keys(self) -> Array:
        """Return a hash of the content of every input: (item)."""
        kind = self.kind.encode()[:16]
        digests = [
            blake2b(content, digest_size=16, person=kind).digest() for content in self.contents()
        ]
        return np.frombuffer(b"".join(digests), KEY)


@dataclass(frozen=True, eq=False)
class Arrays(Inputs):
    """Numbers: features, or whole images as arrays."""

    values: Tensor  # (item, …)
    kind: ClassVar[str] = "arrays"

    @property
    def shape(self) -> tuple[int, ...]:
        """Axes of one input."""
        return tuple(self.values.shape[1:])

    def __len__(self) -> int:
        return len(self.values)

    def take(self, items: Integers) -> Arrays:
        """Return the inputs of items, by code."""
        return Arrays(self.values[torch.from_numpy(np.asarray(items, dtype=np.int64))])

    def contents(self) -> Iterable[bytes]:
        """Return the axes and numbers of every input."""
        axes = f"{self.values.dtype} {tuple(self.values.shape[1:])} ".encode()
        return [axes + value.tobytes() for value in self.values.contiguous().numpy()]


@dataclass(frozen=True, eq=False)
class Texts(Inputs):
    """Texts of any length."""

    texts: tuple[str, ...]
    kind: ClassVar[str] = "texts"

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, items: Integers) -> Texts:
        """Return the inputs of items, by code."""
        return Texts(tuple(self.texts[item] for item in np.asarray(items).tolist()))

    def contents(self) -> Iterable[bytes]:
        """Return every text."""
        return [text.encode("utf-8", "surrogatepass") for text in self.texts]


@dataclass(frozen=True, eq=False)
class Files(Inputs):
    """Files, loaded batch by batch."""

    paths: tuple[Path, ...]
    readers: ClassVar[int] = 4  # threads that decode files

    @abstractmethod
    def load(self, path: Path, size: int) -> Tensor:
        """Return images of a file, squeezed to a square: (…, 3, size, size), from 0 to 1."""

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, items: Integers) -> Self:
        """Return the inputs of items, by code."""
        return replace(self, paths=tuple(self.paths[item] for item in np.asarray(items).tolist()))

    def contents(self) -> Iterable[bytes]:
        """Return a hash of every file."""
        with ThreadPoolExecutor(self.readers) as pool:
            return list(pool.map(content_of, self.paths))


@dataclass(frozen=True, eq=False)
class Images(Files):
    """Image files."""

    kind: ClassVar[str] = "images"

    def load(self, path: Path, size: int) -> Tensor:
        """Return an image, squeezed to a square: (3, size, size), from 0 to 1."""
        try:
            from PIL import Image, UnidentifiedImageError
        except ImportError:
            raise OptionError(f"images need Pillow: {install_command('deep')}") from None
        errors = (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError)
        try:
            with Image.open(path) as image:
                square = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
        except errors as problem:
            raise DataError(f"{path}: not a readable image ({problem})") from None
        return as_pixels(np.array(square))


@dataclass(frozen=True, eq=False)
class LoadedFiles:
    """Images or videos of one size, loaded when they are indexed; numbers from 0 to 1."""

    files: Files
    size: int

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, items: Any, /) -> Tensor:
        paths = self.files.take(np.asarray(items)).paths
        with ThreadPoolExecutor(self.files.readers) as pool:
            return torch.stack(list(pool.map(partial(self.files.load, size=self.size), paths)))


def as_inputs(X: Any) -> Inputs:
    """Return inputs of any kind: an array, sparse matrix or tensor, a list of texts or paths.

    A dictionary holds inputs of several kinds by name.

    >>> as_inputs(["a text", "another"]).kind, len(as_inputs(np.zeros((3, 2))))
    ('texts', 3)
    """
    if isinstance(X, Inputs):
        return X
    if isinstance(X, Mapping) and not sparse.issparse(X):  # some of these are mappings, too
        from .encoding import Several

        return Several({str(name): as_inputs(part) for name, part in X.items()})
    if isinstance(X, Tensor):
        return Arrays(_numbers(X))
    if sparse.issparse(X):
        matrix = cast(Any, X)
        size = 4 * matrix.shape[0] * matrix.shape[1]
        if size > _DENSE:
            raise DataError(
                f"a sparse matrix {matrix.shape} would take {size / 2**30:.0f} GiB; reduce its "
                "columns, as by TruncatedSVD or max_features of TfidfVectorizer"
            )
        X = matrix.astype(np.float32).toarray()
    if isinstance(X, Sequence) and not isinstance(X, str) and len(X):
        if all(isinstance(text, str) for text in X):
            return Texts(tuple(X))
        if all(isinstance(path, Path) for path in X):
            return files_of(X)
    values = np.asarray(X)
    all_texts = values.dtype.kind == "O" and all(isinstance(text, str) for text in values.flat)
    if values.ndim == 1 and (all_texts or values.dtype.kind in "UT"):
        return Texts(tuple(map(str, values.tolist())))
    if values.dtype.kind not in "fiub" or values.ndim == 0:
        raise DataError("inputs are an array of numbers, a list of texts or a list of paths")
    return Arrays(_numbers(torch.from_numpy(np.array(values))))


def files_of(paths: Sequence[Path], frames: int | None = None, *, sound: bool = False) -> Files:
    """Return files as images, videos or sounds, by their extensions.

    Parameters
    ----------
    paths
        Files of one kind.
    frames
        Of videos and sounds: how many.
    sound
        Whether videos are used with their sound.
    """
    from .media import Sounds, Videos, VideosWithSound

    options = {} if frames is None else {"frames": frames}
    endings = {path.suffix.lower() for path in paths}
    if endings and endings <= SOUND_ENDINGS:
        return Sounds(tuple(paths), **options)
    if endings and endings <= VIDEO_ENDINGS:
        return (VideosWithSound if sound else Videos)(tuple(paths), **options)
    return Images(tuple(paths))


def empty_inputs(kind: str, shape: tuple[int, ...] = ()) -> Inputs:
    """Return inputs of a kind without content, for encoders that depend on their shape alone."""
    from .media import Sounds, Videos, VideosWithSound

    if kind == "arrays":
        return Arrays(torch.zeros(1, *shape))
    kinds: tuple[Any, ...] = (Images, Texts, Videos, Sounds, VideosWithSound)
    return {cls.kind: cls for cls in kinds}[kind](())


def digests(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each of these inputs and arrays, without those that are `None`.

    >>> sorted(digests({"inputs": as_inputs(["a text"]), "labels": [0, 1], "features": None}))
    ['inputs', 'labels']
    """
    digests_by_name = {}
    for name, part in parts.items():
        if part is None:
            continue
        values = part.values.numpy() if isinstance(part, Arrays) else part
        array = values.keys() if isinstance(values, Inputs) else np.ascontiguousarray(values)
        digest = blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=8)
        digest.update(array.tobytes())
        digests_by_name[name] = digest.hexdigest()
    return digests_by_name


def as_pixels(image: Array) -> Tensor:
    """Return bytes (row, column, 3) as numbers from 0 to 1: (3, row, column)."""
    return torch.from_numpy(image).permute(2, 0, 1).to(torch.float32) / 255


def _numbers(values: Tensor) -> Tensor:
    """Return values as 32-bit floats; bytes are the brightness of pixels, from 0 to 1."""
    values = values.detach().cpu()
    scaled = values.to(torch.float32) / (255 if values.dtype == torch.uint8 else 1)
    check_finite(scaled.numpy())
    return scaled


def check_finite(values: Array) -> None:
    """Fail where a number of an input is missing or infinite: (item, …)."""
    if not np.isfinite(values).all():
        item = int(np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))[0])
        raise DataError(f"input {item}: a number is missing or infinite; fill it or leave it out")


def content_of(path: Path) -> bytes:
    """Return a hash of the content of a file."""
    try:
        return blake2b(path.read_bytes(), digest_size=16).digest()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror})") from None


@dataclass(frozen=True, kw_only=True)
class Augment(Settings):
    """Random changes to images: (item, channel, height, width), from 0 to 1.

    Parameters
    ----------
    flip
        Share of images that are flipped.
    crop
        Largest share of a side that is cropped; the rest is resized.
    colour
        Largest relative change of brightness, contrast and saturation.

    Examples
    --------
    >>> Augment(flip=1, crop=0, colour=0)(torch.tensor([[[[0.0, 1.0]]]])).tolist()
    [[[[1.0, 0.0]]]]
    """

    flip: Probability = 0.5
    crop: Probability = 0.2
    colour: NonNegative = 0.2

    def __call__(self, x: Tensor) -> Tensor:
        """Return augmented images."""
        if self.flip:
            mirrored = torch.rand(len(x)) < self.flip
            x = torch.where(mirrored.to(x.device)[:, None, None, None], x.flip(-1), x)
        if self.crop:
            x = _cropped(x, self.crop)
        if self.colour:
            x = _coloured(x, self.colour)
        return x


def augment_for(inputs: Inputs) -> Augment:
    """Return the default augmentation of inputs, which have to be images."""
    images = inputs.values.ndim == 4 if isinstance(inputs, Arrays) else inputs.kind == "images"
    if not images:
        raise OptionError(f"only images are augmented, not {inputs.kind}")
    return Augment()


def _cropped(x: Tensor, most: float) -> Tensor:
    """Return a random crop of every image, resized."""
    side = 1 - most * torch.rand(len(x), 2)  # (item, axis): share of the side that is kept
    shift = (1 - side) * (2 * torch.rand(len(x), 2) - 1)
    window = torch.zeros(len(x), 2, 3)
    window[:, [0, 1], [0, 1]] = side
    window[:, :, 2] = shift
    grid = functional.affine_grid(window, list(x.shape), align_corners=False)
    return functional.grid_sample(
        x, grid.to(x), mode="bilinear", padding_mode="border", align_corners=False
    )


def _coloured(x: Tensor, most: float) -> Tensor:
    """Return images with random brightness, contrast and saturation."""
    factors = 1 + most * (2 * torch.rand(3, len(x), 1, 1, 1) - 1)
    brightness, contrast, saturation = factors.clamp(min=0).to(x)
    x = x * brightness
    x = torch.lerp(x.mean(dim=(1, 2, 3), keepdim=True), x, contrast)
    if x.shape[1] == 3:
        x = torch.lerp(x.mean(dim=1, keepdim=True), x, saturation)
    return x.clamp(0, 1)
