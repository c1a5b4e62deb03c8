"""Data sets prepared as a folder: by name, or from annotations, folders, archives and scripts.

The folder has `answers.json` and `metadata.json` as peerannot expects them, and links to pictures
if there are any. A data set's own script is run as peerannot runs it, and only on request.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from ..base.files import atomic_folder
from ..errors import DataError, MethodError, OptionError
from ..formats.reading import examine
from ..formats.tools.peerannot import read_folder, write_folder, write_simulation
from ..formats.writing import write_truth
from ..method import Progress
from ..registry import simulators
from .archives import is_archive, names_in, unpack
from .data_set import ImageFolders, Installed, Layout, read_answers, write_data_set
from .demo import demo
from .fetching import install_public
from .recipes import RECIPES, find_recipe
from .simulation import simulate

__all__ = ["SIMULATED", "Installed", "install"]


# The size of a simulated data set.
SIMULATED: dict[str, Any] = {"n_items": 200, "n_annotators": 30, "n_classes": 5, "feedback": 10}
_SEED = 12345  # peerannot's, for the validation split of training pictures
_NAME = "dataset"  # the name under which scripts are imported
_PARTS = ("train", "val", "test")


def install(
    source: str | Path,
    folder: str | Path | None = None,
    *,
    answers: str | Path | None = None,
    answers_format: Layout | None = None,
    metadata: str | Path | None = None,
    label_names: str | Path | None = None,
    pictures: ImageFolders | None = None,
    answers_only: bool = False,
    test_truth: str | Path | None = None,
    test_truth_format: Layout | None = None,
    trust_code: bool = False,
    archives: Sequence[str | Path] = (),
    progress: Progress | None = None,
    seed: int = _SEED,
) -> Installed:
    """Prepare a data set as a folder.

    Parameters
    ----------
    source
        `demo`, the name of a public data set or of a simulator, a file with annotations, a
        folder, an archive, or a Python script.
    folder
        The target; the current folder for annotations and scripts, otherwise one named after
        the source.
    answers
        The annotations, where `source` does not hold them.
    answers_format
        0 for a matrix of class numbers, 1 for `{item: {annotator: label}}`, 2 for
        `{annotator: {item: label}}`; recognised if not given.
    metadata
        JSON with name and n_classes; what is not in it is counted.
    label_names
        A text with the name of every class, one on each line.
    pictures
        Where pictures are, to be linked; folders for validation and test may be absent.
    answers_only
        Write `answers.json` alone, unless metadata or names of classes are given.
    test_truth, test_truth_format
        Known labels of the test pictures; by default the folders they are in.
    trust_code
        Run a script's code, which can do anything that you can do.
    archives
        Files of a public data set, or a folder of them, that need not be fetched.
    progress
        Called with bytes fetched, and bytes in all.
    seed
        Random seed of the validation split.
    """
    path = Path(source)
    script = path.suffix == ".py"
    if script and answers is None:
        return _run(path, Path(folder or "."), trust_code)
    recipe = None if _is_path(source) else find_recipe(str(source))
    if recipe:
        target = Path(folder or recipe)
        _refuse_full(target)
        return install_public(recipe, target, archives, images=not answers_only, progress=progress)
    if archives:
        sets = ", ".join(RECIPES)
        raise OptionError(remedy=f"{{}} is for {sets}, and this is {source}", archives=...)
    if not script and (_is_name(source) or not path.exists()):
        return _by_name(str(source), Path(folder or str(source)), seed)
    settings: dict[str, Any] = {
        "metadata": metadata,
        "label_names": label_names,
        "pictures": pictures,
        "answers_only": answers_only,
        "test_truth": test_truth,
        "test_truth_format": test_truth_format,
        "seed": seed,
    }
    if not script and answers is None and is_archive(path):
        return _from_archive(path, Path(folder or path.name.split(".")[0]), settings)
    if not script and answers is None and path.is_dir():
        return _from_folder(path, Path(folder or path.resolve().name), settings)
    annotations, notes = read_answers(Path(answers or path), answers_format)
    return write_data_set(Path(folder or "."), annotations, notes, **settings)


def _is_path(source: str | Path) -> bool:
    """Return whether a source cannot be a name; a folder that is called like one is `./name`."""
    return not isinstance(source, str) or "/" in source or "\\" in source


def _is_name(source: str | Path) -> bool:
    """Return whether a source is a known name that needs no file."""
    if _is_path(source):
        return False
    try:
        return source == "demo" or bool(simulators.resolve(str(source)))
    except MethodError:
        return False


def _by_name(name: str, folder: Path, seed: int) -> Installed:
    """Prepare a data set that needs no file."""
    _refuse_full(folder)
    if name == "demo":
        annotations, truth = demo()
        write_folder(folder, annotations, metadata={"name": "demo"})
        write_truth(truth, folder / "truth.csv")  # an array would lose the names
        return Installed(folder, annotations)
    try:
        strategy = simulators.create(name)
    except MethodError as problem:
        raise DataError(
            f"{name}: no such file, and no data set of that name: demo, {', '.join(RECIPES)}, or a "
            f"simulator ({problem})"
        ) from None
    if strategy.numeric:
        raise OptionError(f"{name} draws numbers; use dissensus simulate with the format table")
    simulation = simulate(strategy, **SIMULATED, seed=0 if seed == _SEED else seed)
    write_simulation(simulation, folder)
    return Installed(folder, simulation.annotations)


def _from_folder(path: Path, folder: Path, settings: Mapping[str, Any]) -> Installed:
    """Read the annotations of a folder; copy or link its other files."""
    if folder.resolve() == path.resolve():
        remedy = "name another {}"
        where = str(path)
        raise OptionError(
            "it is there already", where=where, remedy=remedy, folder=..., answers=...
        )
    _refuse_full(folder)
    installed = _write_read(path, folder, settings)
    for name in ("ground_truth.npy", "test_groundTruth.json"):
        if (path / name).is_file() and not (folder / name).exists():
            shutil.copyfile(path / name, folder / name)
    linked = 0
    for part in _PARTS if settings["pictures"] is None else ():
        if (path / part).is_dir():
            (folder / part).symlink_to((path / part).resolve(), target_is_directory=True)
            linked += sum(1 for _ in (path / part).glob("*/*"))
    return Installed(folder, installed.annotations, installed.n_links + linked, installed.notes)


def _from_archive(path: Path, folder: Path, settings: Mapping[str, Any]) -> Installed:
    """Unpack a data set, or read an export that comes as an archive."""
    if not any(_holds_answers(name.name) for name in names_in(path)):
        reading = examine(path, kind="single")
        return write_data_set(folder, reading.annotations, reading.notes, **settings)
    _refuse_full(folder)
    with atomic_folder(folder) as draft:
        unpack(path, draft)
        inside = list(draft.iterdir())
        if len(inside) == 1 and inside[0].is_dir():  # all of it in one folder of its own
            for entry in list(inside[0].iterdir()):
                if entry.name == inside[0].name:
                    raise DataError(f"{path}: a folder in a folder of the same name; unpack it")
                entry.rename(draft / entry.name)
            inside[0].rmdir()
        installed = _write_read(draft, draft, {**settings, "name": folder.name})
    return Installed(folder, installed.annotations, installed.n_links, installed.notes)


def _write_read(path: Path, folder: Path, settings: Mapping[str, Any]) -> Installed:
    """Write annotations and metadata of one folder to another, unless other metadata are given."""
    annotations, notes = (
        (read_folder(path), ()) if _is_ready(path) else read_answers(_answers_in(path), None)
    )
    own = path / "metadata.json"
    metadata = settings["metadata"] or (own if own.is_file() else None)
    return write_data_set(folder, annotations, notes, **{**settings, "metadata": metadata})


def _is_ready(folder: Path) -> bool:
    return (folder / "answers.json").is_file()


def _holds_answers(name: str) -> bool:
    return name.lower().startswith("answers.")


def _answers_in(folder: Path) -> Path:
    """Return the file in a folder that holds the annotations."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    answer_files = [file for file in files if _holds_answers(file.name)]
    if len(answer_files) == 1:
        return answer_files[0]
    if not answer_files and len(files) == 1:
        return files[0]
    problem = "no answers.json, nor any one file answers.…"
    raise DataError(problem, where=str(folder), remedy="say {}", answers="FILE")


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        where = str(folder)
        raise DataError("is there already", where=where, remedy="name another {}", folder=...)


def _run(path: Path, folder: Path, trusted: bool) -> Installed:
    """Run a data set's script, which has a class with `setfolders`, if it is trusted."""
    if not path.is_file():
        raise DataError(f"{path}: no such file or directory")
    if not trusted:
        problem = "a script, which could do anything you can"
        raise OptionError(problem, where=str(path), remedy="read it, then {}", trust_code=True)
    folder.mkdir(parents=True, exist_ok=True)
    set_folders(path.resolve(), folder)
    for position in (folder, path.resolve().parent):
        if _is_ready(position):
            return Installed(position, read_folder(position))
    return Installed(folder, None, notes=("the script ran, but left no answers.json",))


def set_folders(script: Path, folder: Path) -> None:
    """Call `setfolders()` of the first class that has it, in the folder."""
    spec = importlib.util.spec_from_file_location(_NAME, script)
    if spec is None or spec.loader is None:
        raise DataError(f"{script}: cannot be run as Python")
    module = importlib.util.module_from_spec(spec)
    with chdir(folder):
        sys.modules[_NAME] = module
        try:
            spec.loader.exec_module(module)
            makers = [
                member
                for member in vars(module).values()
                if isinstance(member, type)
                and member.__module__ == _NAME
                and hasattr(member, "setfolders")
            ]
            if not makers:
                raise DataError(f"{script}: no class with setfolders() in it")
            makers[0]().setfolders()
        except DataError:
            raise
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise DataError(f"{script}: its code failed ({reason})") from problem
        finally:
            sys.modules.pop(_NAME, None)
