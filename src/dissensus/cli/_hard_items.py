"""Scores of `identify` that train a network: what it learns from, and the files it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.progress import progress_bar
from ..quality.identify_output import print_score, score_json
from ..pages.terminal import is_first, note, show_json
from .files import write_table
from .training import read_data

if TYPE_CHECKING:
    from ..quality.score_context import ScoreContext
    from ..quality.scores import Score
    from ..deep.learning.data_sets import DataSet
    from ..deep.learning.hardness import Hardness
    from ..deep.nn import Inputs
    from ..formats import Reading
    from ..reporting.hardest import HardItem
    from ._network import Network

_SHOWN = 24  # items in the picture
_WAUM_FILES = ("waum.csv", "score_per_worker.json", "aum_per_worker.json")


@dataclass(frozen=True)
class HardItems:
    """A score that trains a network, and its options."""

    score: Score
    path: str
    is_folder: bool  # whether PATH is a data set folder
    metadata: str | None
    hard_labels: str | None
    pleiss: bool
    alpha: float
    topk: int
    network: Network

    def identify(
        self,
        found: Reading,
        asked: ScoreContext,
        *,
        output: str | None,
        draw: Callable[[Callable[[Any], Any]], None],
        top: int,
        as_json: bool,
    ) -> None:
        """Train, write the files of peerannot and a picture, and print the hardest items."""
        from ..base.names import indices_of
        from ..quality.scores import Scored, score
        from ..formats.sources import format_for

        if output and output != "-":
            format_for(output)  # before anything is computed
        before = asked.annotations
        data = read_data(self.path, before, self.network, found=found, metadata=self.metadata)
        folder, matrices = self._folder(data.inputs), asked.matrices
        if matrices is not None and len(matrices) == before.n_annotators:
            matrices = matrices[indices_of(data.annotations.annotators, before.annotators)]
        asked = replace(
            asked,
            annotations=data.annotations,
            inputs=data.inputs,
            matrices=matrices,
            gold=self._single_labels(asked, data) if self.score.name == "aum" else None,
        )
        hard = self._train(asked, folder / "training")
        if not is_first():
            return
        files = self._write(hard, data, found, folder)
        scored = Scored(self.score, data.annotations.items, hard.score)
        write_table(hard.table(), output)
        draw(lambda pairs: pairs.item_pair(hard, score(data.annotations, "entropy")))
        if as_json:
            summary = {"epochs": hard.epochs, "learned": hard.learned, "files": files}
            show_json(score_json(scored) | {"too_hard": hard.too_hard.tolist()} | summary)
            return
        if not output:
            print_score(scored, top)
        if hard.learned <= hard.common:
            note(
                f"the network predicts {hard.learned:.0%} of the labels, and one class has "
                f"{hard.common:.0%}: it learned nothing; try more --epochs, another --lr or "
                "--encoder"
            )
        note(
            f"{int(hard.pruned.sum())} of {data.annotations.n_items} items are too hard, after "
            f"{hard.epochs} epochs; all files are in {folder}"
        )

    def _train(self, asked: ScoreContext, run: Path) -> Hardness:
        from ..deep.nn.runs import clear_ended

        network, name = self.network, self.score.name
        if is_first() and not network.resume:
            for each in (run, *run.glob("*/")):
                clear_ended(each)
        settings: dict[str, Any] = {
            **network.estimator(asked.inputs),
            **asdict(network.training(asked.seed)),
            "alpha": self.alpha,
            "top": max(self.topk, 1),
            "margin": "pleiss" if self.pleiss else "top2",
            "folder": run,
            "resume": network.resume,
        }
        if name in ("aum", "aumc"):
            settings["keep"] = True
        with progress_bar("training") as progress:
            return replace(asked, network={**settings, "progress": progress}).hardness(name)

    def _folder(self, inputs: Inputs) -> Path:
        """Return the output folder, as peerannot names it."""
        name, margin = self.score.name, "pleiss" if self.pleiss else "yang"
        base = Path(self.network.folder or (self.path if self.is_folder else "."))
        last = name if name in ("aum", "aumc") else f"{name}_{self.alpha}_{margin}"
        return base / "identification" / self.network.name(inputs) / last

    def _single_labels(self, asked: ScoreContext, data: DataSet) -> dict[str, str] | None:
        """Return one label per item for AUM: from a file, gold, or the folders of the images."""
        if self.hard_labels:
            from ..formats.predictions import read_predictions

            given: Any = read_predictions(self.hard_labels, scale="nominal")
            known = given.label >= 0
            labels = given.classes[given.label[known]]
            return dict(zip(given.items[known].tolist(), labels.tolist(), strict=True))
        return data.folders if asked.gold is None else dict(asked.gold)

    def _write(self, hard: Any, data: DataSet, found: Reading, folder: Path) -> list[str]:
        """Write the files, and return their paths."""
        import numpy as np

        from ..base.names import indices_of
        from ..formats.tools.hard_items import samples_of, write_aum, write_too_hard, write_waum
        from ..formats.writing import save_array

        rest = data.others.inputs if data.others is not None else None
        images = [getattr(inputs, "paths", ()) for inputs in (data.inputs, rest)]
        samples = samples_of(data.annotations.items, *images)
        too_hard = folder / f"too_hard_{self.alpha}.txt"
        write_too_hard(too_hard, samples.index[hard.pruned], hard.too_hard)
        written = [too_hard, self._picture(hard, data.inputs, folder)]
        if self.score.name in ("aum", "aumc"):
            write_aum(folder, hard, samples)
            written += [folder / "aum_values.csv", folder / "full_aum_records.csv"]
        else:
            write_waum(folder, hard, samples)
            written += [folder / name for name in _WAUM_FILES]
            every = found.annotations
            posterior = np.zeros((every.n_items, data.annotations.n_classes))
            posterior[indices_of(data.annotations.items, every.items)] = hard.posterior
            file = f"labels_{self.score.name}_{self.alpha}.npy"
            written.append(folder.parents[2] / "labels" / file)
            save_array(written[-1], posterior)
        return [str(each) for each in written]

    def _picture(self, hard: Hardness, inputs: Inputs, folder: Path) -> Path:
        """Write the hardest items: images as a contact sheet, anything else as a page."""
        from ..base.files import atomic_file
        from ..reporting.hardest import contact_sheet, hard_page, is_picture

        items = _hardest(hard, inputs, self._class_names(hard.annotations.classes.tolist()))
        n_items = hard.annotations.n_items
        title = f"The {len(items)} hardest of {n_items} items, by {self.score.name}"
        pictures = bool(items) and all(is_picture(item.shown) for item in items)
        file = folder / ("hardest.png" if pictures else "hardest.html")
        with atomic_file(file) as draft:
            page = contact_sheet(items, title) if pictures else hard_page(items, title).encode()
            draft.write_bytes(page)
        return file

    def _class_names(self, classes: list[str]) -> list[str]:
        """Return the names of classes; the metadata of a folder may have better ones."""
        from ..formats.tools.peerannot import read_metadata

        if self.is_folder:
            names = read_metadata(self.path, self.metadata).get("label_names")
            if isinstance(names, list) and len(names) == len(classes):
                return [str(name) for name in names]
        return classes


def _hardest(hard: Hardness, inputs: Inputs, classes: list[str]) -> list[HardItem]:
    import numpy as np

    from ..deep.nn import Arrays, Images, Texts
    from ..reporting.hardest import HardItem

    annotations = hard.annotations
    chosen = hard.hardest[: min(_SHOWN, int((~np.isnan(hard.score)).sum()))]
    inputs = inputs.take(chosen)
    shown: list[Any] = [None] * len(inputs)
    if isinstance(inputs, (Images, Texts)):
        shown = list(inputs.paths if isinstance(inputs, Images) else inputs.texts)
    elif isinstance(inputs, Arrays) and inputs.values.ndim == 4:
        shown = list(inputs.values.numpy())
    votes = annotations.votes()
    out = []
    for item, content in zip(chosen.tolist(), shown, strict=True):
        order = np.argsort(-votes[item], kind="stable").tolist()
        labels = tuple((classes[k], int(votes[item, k])) for k in order if votes[item, k])
        score, pruned = float(hard.score[item]), bool(hard.pruned[item])
        out.append(HardItem(str(annotations.items[item]), score, pruned, labels, content))
    return out
