"""Public data sets by name: those that peerannot names, made from what their authors publish.

A recipe lists files, which are fetched or given as local archives, and reads them. Items,
annotators and classes are numbers, as peerannot has them; the names of items are in the metadata.
Nothing that was downloaded is run or unpickled.
"""

from __future__ import annotations

import csv
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from ..answers.annotations import Annotations
from ..base.arrays import Integers
from ..base.names import numbered
from ..errors import DataError
from ..formats.tools.peerannot import read_folder
from .data_set import read_answers, read_words

_GITHUB = "https://raw.githubusercontent.com/peerannot/peerannot"


@dataclass(frozen=True)
class Source:
    """A file that its authors publish."""

    url: str
    files: str = ""  # pattern of the files in an archive that are read; none for a plain file
    images: str = ""  # pattern of its images, which --no-task leaves out
    md5: str | None = None  # as published by the authors
    optional: bool = False  # holds images alone
    file: str = ""  # its name, where it has to be downloaded by hand from the page at `url`
    most: int = 2**32  # bytes

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.file or PurePosixPath(urlsplit(self.url).path).name

    def reads(self, name: PurePosixPath, *, images: bool) -> bool:
        """Return whether a file of the archive is read."""
        patterns = [self.files, self.images if images else ""]
        return any(
            pattern and re.fullmatch(rf"(.*/)?({pattern})", str(name)) for pattern in patterns
        )


class Prepared(NamedTuple):
    """A data set that has been read."""

    annotations: Annotations
    label_names: tuple[str, ...] = ()
    item_names: tuple[str, ...] = ()
    truth: Integers | None = None  # (item): a class number, -1 where it is not known
    pictures: Iterable[tuple[Path, bytes]] = ()  # position in the folder, and content


@dataclass(frozen=True)
class Recipe:
    """How a data set is made."""

    text: str
    sources: tuple[Source, ...]
    prepare: Callable[[Mapping[str, Path]], Prepared]  # {file: the folder it was unpacked to}


def find_recipe(name: str) -> str | None:
    """Return the name of a recipe, whatever its case, dashes and underscores."""

    def plain(text: str) -> str:
        return re.sub(r"[-_]", "", text.casefold())

    return next((recipe for recipe in RECIPES if plain(recipe) == plain(name)), None)


_SCENES = (  # in the order of the published class numbers
    *("highway", "insidecity", "tallbuilding", "street"),
    *("forest", "coast", "mountain", "opencountry"),
)


def _labelme(folders: Mapping[str, Path]) -> Prepared:
    """Classes are in the order of the alphabet, as in the folders of images."""
    folder = folders["deep_LabelMe.tar.gz"]
    names = tuple(sorted(_SCENES))
    renumbered = np.array([names.index(scene) for scene in _SCENES])
    answers, _ = read_answers(_file_of(folder, "answers.txt"), 0)
    label = renumbered[_codes(answers.classes, len(names), "answers.txt")[answers.label]]
    sizes = answers.n_items, answers.n_annotators, len(names)
    annotations = _numbered(answers.item, answers.annotator, label, sizes)
    truth = _codes(read_words(_file_of(folder, "labels_train.txt")), len(names), "labels_train.txt")
    items = read_words(_file_of(folder, "filenames_train.txt"))
    if not len(items) == len(truth) == annotations.n_items:
        raise DataError("deep_LabelMe.tar.gz: answers, labels and names of images do not match")

    def pictures() -> Iterator[tuple[Path, bytes]]:
        number = 0
        for part, target in (("train", "train"), ("valid", "val"), ("test", "test")):
            files = {file.name: file for file in sorted(folder.glob(f"**/{part}/*/*.jpg"))}
            for name in items if part == "train" else files:
                if name in files:
                    yield _picture(target, files[name], number)
                number += 1

    return Prepared(
        annotations, names, item_names=tuple(items), truth=renumbered[truth], pictures=pictures()
    )


_GENRES = (
    *("blues", "classical", "country", "disco", "hiphop"),
    *("jazz", "metal", "pop", "reggae", "rock"),
)


def _music(folders: Mapping[str, Path]) -> Prepared:
    """Songs are numbered as in the table of their genres; test songs have the numbers after."""
    folder, inside = folders["mturk-datasets.tar.gz"], "music_genre_classification"
    gold, test = (
        {
            row["id"]: row["class"]
            for row in _rows(_file_of(folder, f"{inside}/{file}"), ("id", "class"))
        }
        for file in ("music_genre_gold.csv", "music_genre_test.csv")
    )
    columns = ("WorkerID", "Input.song", "Answer.pred_label")
    rows = list(_rows(_file_of(folder, f"{inside}/mturk_answers.csv"), columns))
    item = _positions((row["Input.song"] for row in rows), gold, "mturk_answers.csv")
    people = list(dict.fromkeys(row["WorkerID"] for row in rows))
    annotator = _positions((row["WorkerID"] for row in rows), people, "mturk_answers.csv")
    label = _positions((row["Answer.pred_label"] for row in rows), _GENRES, "mturk_answers.csv")
    truth = _positions(gold.values(), _GENRES, "music_genre_gold.csv")
    annotations = _numbered(item, annotator, label, (len(gold), len(people), len(_GENRES)))
    spectra = folders.get("kaggle_dataset.zip")

    def pictures() -> Iterator[tuple[Path, bytes]]:
        files = {file.name: file for file in sorted(spectra.glob("**/*.png"))} if spectra else {}
        for part, songs, start in (("train", gold, 0), ("test", test, len(gold))):
            for number, song in enumerate(songs, start):
                file = files.get(song.replace(".", "", 1).replace("mp3", "png"))
                if file is not None:
                    yield _picture(part, file, number)

    return Prepared(annotations, _GENRES, item_names=tuple(gold), truth=truth, pictures=pictures())


_CIFAR = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_FOLDERS = ("plane", "car", *_CIFAR[2:])  # peerannot's names for folders of images
_VALIDATED = 9500  # images of the test set before this one train, the others validate


def _cifar10h(folders: Mapping[str, Path]) -> Prepared:
    """People labelled CIFAR-10's test images, which are for training; the others are for test."""
    columns = (
        *("annotator_id", "is_attn_check", "true_label", "chosen_label"),
        "cifar10_test_test_idx",
    )
    table = _file_of(folders["cifar10h-raw.zip"], "cifar10h-raw.csv")
    rows = [row for row in _rows(table, columns) if row["is_attn_check"] in ("0", "0.0", "False")]
    read = {
        name: _codes([row[name] for row in rows], most, table.name)
        for name, most in (
            *(("cifar10_test_test_idx", 10**6), ("annotator_id", 10**6)),
            *(("chosen_label", len(_CIFAR)), ("true_label", len(_CIFAR))),
        )
    }
    item, annotator = read["cifar10_test_test_idx"], read["annotator_id"]
    sizes = int(item.max()) + 1, int(annotator.max()) + 1, len(_CIFAR)
    truth = np.full(sizes[0], -1)
    truth[item] = read["true_label"]
    images = folders.get("cifar-10-binary.tar.gz")

    def pictures() -> Iterator[tuple[Path, bytes]]:
        number = 0
        for pattern in ("test_batch.bin", "data_batch_*.bin") if images else ():
            for file in sorted(images.glob(f"**/{pattern}")) if images else ():
                for label, pixels in _records(file):
                    part = "train" if number < _VALIDATED else "val"
                    part = "test" if file.name.startswith("data") else part
                    name = _FOLDERS[label]
                    yield Path(part) / name / f"{name}-{number}.png", _png(pixels)
                    number += 1

    annotations = _numbered(item, annotator, read["chosen_label"], sizes)
    return Prepared(annotations, _CIFAR, truth=truth, pictures=pictures())


def _bird_audio(folders: Mapping[str, Path]) -> Prepared:
    """Take the answers of experts for the truth, where they agree; they stay annotators."""
    folder = folders["bird_sound_training_data.zip"]
    table = _file_of(folder, "letters/annotations.tsv")
    rows = list(_rows(table, ("candidate_id", "user_id", "annotation"), "\t"))
    columns = ("user_id", "birdwatching_activity_level")
    levels = {
        row[columns[0]]: row[columns[1]]
        for row in _rows(_file_of(folder, "users.tsv"), columns, "\t")
    }
    clips, people = (
        list(dict.fromkeys(row[name] for row in rows)) for name in ("candidate_id", "user_id")
    )
    item = _positions((row["candidate_id"] for row in rows), clips, table.name)
    annotator = _positions((row["user_id"] for row in rows), people, table.name)
    label = _codes([row["annotation"] for row in rows], 2, table.name)
    expert = np.array([levels.get(row["user_id"], "").removesuffix(".0") == "4" for row in rows])
    votes = [
        np.bincount(item[expert & (label == answer)], minlength=len(clips)) for answer in (0, 1)
    ]
    truth = np.where(votes[0] == 0, np.where(votes[1] == 0, -1, 1), np.where(votes[1] == 0, 0, -1))
    annotations = _numbered(item, annotator, label, (len(clips), len(people), 2))
    return Prepared(annotations, ("absent", "present"), tuple(clips), truth)


def _answers(folders: Mapping[str, Path]) -> Prepared:
    return Prepared(read_folder(folders["answers.json"]))


RECIPES = {
    "labelme": Recipe(
        "1000 images of 8 scenes, 59 annotators (Rodrigues and Pereira 2018)",
        (
            Source(
                "http://fprodrigues.com/deep_LabelMe.tar.gz",
                r"answers\.txt|labels_train\.txt|filenames_train\.txt",
                r"(train|valid|test)/\w+/[^./][^/]*\.jpg",
            ),
        ),
        _labelme,
    ),
    "music": Recipe(
        "700 songs of 10 genres, 44 annotators (Rodrigues, Pereira and Ribeiro 2013)",
        (
            Source(
                "http://fprodrigues.com/mturk-datasets.tar.gz",
                r"music_genre_classification/(mturk_answers|music_genre_(gold|test))\.csv",
            ),
            Source(
                "https://www.kaggle.com/datasets/andradaolteanu/"
                "gtzan-dataset-music-genre-classification",
                images=r"images_original/\w+/[^./][^/]*\.png",
                optional=True,
                file="kaggle_dataset.zip",
            ),
        ),
        _music,
    ),
    "cifar10h": Recipe(
        "10 000 images of 10 classes, 2571 annotators (Peterson et al. 2019)",
        (
            Source(
                "https://github.com/jcpeterson/cifar-10h/raw/master/data/cifar10h-raw.zip",
                r"cifar10h-raw\.csv",
            ),
            Source(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                images=r"(test_batch|data_batch_\d)\.bin",
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                optional=True,
            ),
        ),
        _cifar10h,
    ),
    "bird-audio": Recipe(
        "79 592 sounds, is a bird heard or not, 204 annotators (Lehikoinen et al. 2023)",
        (
            Source(
                "https://zenodo.org/records/7030863/files/bird_sound_training_data.zip",
                r"letters/annotations\.tsv|users\.tsv",
                most=2**36,
            ),
        ),
        _bird_audio,
    ),
    "krippendorff-data": Recipe(
        "15 items, 3 annotators: an example of Krippendorff's alpha",
        (
            Source(
                f"{_GITHUB}/92ab2efc00934329aed4e2ca5132488722861a8e/datasets/krippendorff-data/"
                "answers.json",
                most=2**20,
            ),
        ),
        _answers,
    ),
    "toy-data": Recipe(
        "3 items, 4 annotators",
        (
            Source(
                f"{_GITHUB}/2b76ac542d3b18e0462bbf544ee5b6b8ea24100f/datasets/toy-data/answers.json",
                most=2**20,
            ),
        ),
        _answers,
    ),
}


def _numbered(item: Any, annotator: Any, label: Any, sizes: tuple[int, int, int]) -> Annotations:
    """Return annotations on numbers; `sizes` are how many items, annotators and classes."""
    n_items, n_annotators, n_classes = sizes
    return Annotations.from_codes(
        item,
        annotator,
        label,
        items=numbered(n_items),
        annotators=numbered(n_annotators),
        classes=numbered(n_classes),
    )


def _file_of(folder: Path, name: str) -> Path:
    """Return the file of that name in an unpacked archive."""
    files = sorted(file for file in folder.glob(f"**/{name}") if file.is_file())
    if not files:
        raise DataError(f"{name} is not in the archive; it is not the one that was published")
    return files[0]


def _rows(path: Path, columns: tuple[str, ...], separator: str = ",") -> Iterator[dict[str, str]]:
    """Yield the rows of a table that has these columns."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, delimiter=separator)
            absent = [name for name in columns if name not in (table.fieldnames or ())]
            if absent:
                raise DataError(f"{path.name}: no column {absent[0]!r} in it")
            for row in table:
                if any(row[name] is None for name in columns):
                    raise DataError(f"{path.name}, line {table.line_num}: a row is cut off")
                yield row
    except (UnicodeDecodeError, csv.Error) as problem:
        raise DataError(f"{path.name}: cannot be read as a table ({problem})") from None


def _positions(values: Iterable[str], names: Iterable[str], file: str) -> Integers:
    codes = {name: code for code, name in enumerate(names)}
    try:
        return np.array([codes[value] for value in values], dtype=np.int64)
    except KeyError as problem:
        raise DataError(f"{file}: {problem} is not among the published names") from None


def _codes(values: Iterable[str], most: int, file: str) -> Integers:
    """Return numbers below a limit."""
    try:
        codes = np.array([float(value) for value in values])
    except ValueError as problem:
        raise DataError(f"{file}: {problem}") from None
    if len(codes) == 0 or not ((codes >= 0) & (codes < most) & (codes == np.floor(codes))).all():
        raise DataError(f"{file}: not all are whole numbers below {most}")
    return codes.astype(np.int64)


def _picture(part: str, file: Path, number: int) -> tuple[Path, bytes]:
    position = Path(part) / file.parent.name / f"{file.stem}-{number}{file.suffix}"
    return position, file.read_bytes()


def _records(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield label and pixels of CIFAR-10's binary records: (32, 32, 3)."""
    raw = np.fromfile(file, dtype=np.uint8)
    if len(raw) == 0 or len(raw) % 3073 or raw[::3073].max() >= len(_CIFAR):
        raise DataError(f"{file.name}: no records of a label and 32 × 32 pixels")
    for record in raw.reshape(-1, 3073):
        yield int(record[0]), record[1:].reshape(3, 32, 32).transpose(1, 2, 0)


def _png(pixels: Any) -> bytes:
    """Return an image (row, column, colour) as PNG."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # no filter
    head = struct.pack(">II", width, height) + bytes([8, 2, 0, 0, 0])
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
