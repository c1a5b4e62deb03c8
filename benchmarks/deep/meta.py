"""Few-shot learning from annotators: `python benchmarks/run.py deep meta --part omniglot`.

Networks and measurements are kept in `out/meta` and taken up again; `--part` names what to measure.
Nothing is fitted or chosen on test classes: networks learn on the training alphabets, the numbers
of adapters on the validation ones, and the adapter is the one that is right most often there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from dissensus.deep.meta.base import Adapter
from dissensus.deep.meta.episodes import Episodes, EpisodeSource, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators
from dissensus.deep.meta.tasks import Tasks
from dissensus.deep.meta.tuning import Scores, choose, embedded, score
from dissensus.registry import adapters
from few_shot_nets import NETS, net, trained_with
from kept import KEPT, kept
from omniglot import ANNOTATORS, RATIOS, SHOTS, cells, characters
from pages import Section, Table

__all__ = ["main"]

STUDY, PAGE = "meta", "meta"
CROWD = PseudoAnnotators()
WIDE = Sizes(pool_classes=10**6, pool_items=20)  # of episodes out of all classes of a split
CANDIDATES = (
    "em-full",
    "em-one-coin[steps=5]",
    "em-one-coin[steps=3,starts=everyone]",
    "em-kinds[steps=3,starts=everyone]",
)
MORE = ("soft-votes", "protonet-mv", "protonet-ds")
BINS = 15  # of confidences
EPISODES = 100  # in every cell of the grid of 36


def vectors(name: str) -> tuple[Tasks, Tasks]:
    """Return validation and test characters as embeddings of a network."""
    every, embedding = characters(), net(name)
    return embedded(embedding, every.valid), embedded(embedding, every.test)


def fitted(name: str, spec: str, valid: Tasks, crowd: PseudoAnnotators = CROWD) -> Adapter:
    """Return an adapter whose numbers are fitted to the validation characters; kept."""
    adapter = adapters.create(spec).build(valid.x.shape[1], 5)  # type: ignore[union-attr]

    def measure() -> dict[str, Any]:
        source = EpisodeSource(valid, WIDE, crowd, 640)
        found = choose({spec: adapter}, source, steps=100, episodes=640)
        one = found.scores[spec]
        state = {key: value.tolist() for key, value in adapter.state_dict().items()}
        return {"state": state, "accuracy": one.mean, "half": one.half}

    summary = kept(STUDY, f"fit {name} {spec} {crowd.accuracy} {crowd.flippers}", measure)
    adapter.load_state_dict({key: torch.tensor(value) for key, value in summary["state"].items()})
    adapter.valid = summary["accuracy"]  # type: ignore[assignment]
    return adapter.eval()


def on_grid(
    name: str, spec: str, condition: str, make: Callable[[], tuple[Adapter, Tasks]]
) -> dict[str, Any]:
    """Return what an adapter makes of the test grid: accuracies of all episodes, kept."""

    def measure() -> dict[str, Any]:
        adapter, test = make()
        rows = []
        for (shots, annotators, ratio), episodes in cells(test, condition, EPISODES):
            found = score(adapter, [episodes])
            rows.append(
                {
                    "shots": shots,
                    "annotators": annotators,
                    "ratio": ratio,
                    "accuracy": np.round(found.accuracy, 4).tolist(),
                    "log_loss": float(found.log_loss.mean()),
                    "gaps": gaps_of(found).tolist(),
                }
            )
        return {"rows": rows}

    return kept(STUDY, f"grid {name} {spec} {condition}", measure)


def gaps_of(scores: Scores) -> Any:
    """Return correctness less confidence, summed by bins of the confidence: (bin)."""
    bins = np.clip(np.ceil(scores.confidence * BINS).astype(int), 1, BINS) - 1
    return np.bincount(bins, scores.right - scores.confidence, minlength=BINS)


class Cells:
    """The test grid of one method: means and intervals of any part of it."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.rows = summary["rows"]

    def of(self, **wanted: Any) -> Any:
        """Return accuracies of the cells wanted: (cell, episode)."""
        return np.array(
            [
                row["accuracy"]
                for row in self.rows
                if all(row[key] == value for key, value in wanted.items())
            ]
        )

    def mean(self, **wanted: Any) -> float:
        return float(self.of(**wanted).mean())

    def half(self, **wanted: Any) -> float:
        """Return half of a 95 % interval of a mean over cells, from the spread within each."""
        values = self.of(**wanted)
        return float(
            1.96 * np.sqrt((values.var(axis=1, ddof=1) / values.shape[1]).mean() / len(values))
        )

    def log_loss(self) -> float:
        return float(np.mean([row["log_loss"] for row in self.rows]))

    def ece(self) -> float:
        """Return the calibration error over all queries."""
        gaps = np.sum([row["gaps"] for row in self.rows], axis=0)
        return float(np.abs(gaps).sum() / (self.of().size * 50))

    def minus(self, other: Cells, **wanted: Any) -> tuple[float, float]:
        """Return the mean difference to another method on the same episodes, and its half."""
        gap = self.of(**wanted) - other.of(**wanted)
        error = np.sqrt((gap.var(axis=1, ddof=1) / gap.shape[1]).mean() / len(gap))
        return float(gap.mean()), float(1.96 * error)


def line(name: str, found: Cells, *more: Any) -> list[Any]:
    """Return a row of a table of the grid."""
    return [
        name,
        f"{found.mean():.3f} ± {found.half():.3f}",
        *(f"{found.mean(ratio=ratio):.3f}" for ratio in RATIOS),
        *(f"{found.mean(shots=shots):.3f}" for shots in SHOTS),
        *(f"{found.mean(annotators=count):.3f}" for count in ANNOTATORS),
        *more,
    ]


COLUMNS = [
    "method",
    "mean",
    *(f"ratio {ratio}" for ratio in RATIOS),
    *(f"{shots} shot" for shots in SHOTS),
    *(f"{count} annotators" for count in ANNOTATORS),
]


class Known(torch.nn.Module):
    """Ceilings: prototypes of true labels, or of labels judged by the true matrices."""

    def __init__(self, clean: bool) -> None:
        super().__init__()
        self.clean = clean
        self.adapter = adapters.create("prototypes[labels=shares]").build(64, 5)

    def classify(self, network: Any, episodes: Episodes) -> Any:
        from dissensus.deep.meta.em import safe_log, squared_distance

        u = network(episodes.x)
        n_classes = episodes.classes.shape[1]
        posterior = torch.nn.functional.one_hot(episodes.clean, n_classes).float()
        if not self.clean:
            log = torch.zeros_like(posterior)
            episode, item, annotators_ = torch.nonzero(episodes.label >= 0, as_tuple=True)
            annotations = safe_log(episodes.confusion)[
                episode, annotators_, :, episodes.label[episode, item, annotators_]
            ]
            log.index_put_((episode, item), annotations, accumulate=True)
            posterior = log.softmax(dim=2)
        mean = torch.einsum("enk,enm->ekm", posterior, u[episodes.support])
        mean = mean / posterior.sum(dim=1).clamp(min=1e-9)[:, :, None]
        far = squared_distance(u[episodes.query], mean)
        return (-far / 2).log_softmax(dim=2), None


def grid_of(name: str, spec: str, condition: str, positions: dict[str, Any]) -> Cells:
    """Return the grid of an adapter on a network's embeddings."""

    def make() -> tuple[Any, Tasks]:
        if name not in positions:
            positions[name] = vectors(name)
        valid, test = positions[name]
        if spec in ("clean support", "known matrices"):
            return Known(spec == "clean support"), test
        if spec.startswith("protonet"):
            return adapters.create(spec).build(64, 5), test
        return fitted(name, spec, valid), test

    return Cells(on_grid(name, spec, condition, make))


def validation(name: str, specs: Sequence[str], positions: dict[str, Any]) -> dict[str, float]:
    """Return how often adapters are right on validation characters."""
    if name not in positions:
        positions[name] = vectors(name)
    return {spec: float(fitted(name, spec, positions[name][0]).valid) for spec in specs}  # type: ignore[arg-type]


def omniglot(nets: Sequence[str] = tuple(NETS)) -> None:
    """Every adapter on the embeddings of the first network, some on those of the others."""
    positions: dict[str, Any] = {}
    section = Section("omniglot", PAGE)
    first, *others = nets
    judged = validation(first, CANDIDATES, positions)
    best = max(judged, key=lambda spec: judged[spec])
    ceilings = ("known matrices", "clean support")
    for condition in ("independent", "fixed"):
        rows = [
            line(spec + (" *" if spec == best else ""), grid_of(first, spec, condition, positions))
            for spec in (*CANDIDATES, *MORE, *ceilings)
        ]
        note = (
            f"{NETS[first]} The one marked * is right most often on validation characters "
            f"({judged[best]:.3f}). Five classes; {36 * EPISODES} test episodes of 50 queries. "
            "The floor is protonet-mv; ceilings are prototypes of labels judged by the true "
            "matrices, without embeddings, and of true labels."
        )
        section.add(Table(f"Network: {first}; spammers: {condition}", COLUMNS, rows, note))
    rows = [
        line(f"{name}, {condition}: {spec}", grid_of(name, spec, condition, positions))
        for name in others
        for condition in ("independent", "fixed")
        for spec in ("soft-votes", "em-full", best, "protonet-mv", *ceilings)
    ]
    note = " ".join(f"{name}: {NETS[name]}" for name in others)
    section.add(Table("Other networks", COLUMNS, rows, note))
    rows = [
        line(f"{condition}: {spec}", grid_of(first, spec, condition, positions))
        for condition in ("half", "mixed", "weak")
        for spec in ("em-full", best, "protonet-mv", "protonet-ds", "known matrices")
    ]
    note = (
        "half: every item is labelled by half of the annotators; mixed: half of the spammers "
        "prefer some labels, a third of the hammers always make the same error; weak: hammers are "
        "right with 0.5 to 1. Adapters are those fitted to the plain crowd: what a mismatch costs. "
        f"Network: {first}."
    )
    section.add(Table("Other crowds", COLUMNS, rows, note))
    if "noisy" in others:
        section.add(beside_paper(first, best, positions))
    if others:
        section.add(against_clean(dict.fromkeys(nets, best), positions))
    section.write()


def beside_paper(first: str, best: str, positions: dict[str, Any]) -> Table:
    """Return the paper's method, trained and adapted as it is, and what we changed."""

    def as_trained() -> tuple[Adapter, Tasks]:
        embedding, adapter = trained_with("noisy")
        return adapter, embedded(embedding, characters().test)

    conditions = ("independent", "fixed")
    paper = [Cells(on_grid("noisy", "as trained", each, as_trained)) for each in conditions]
    runs = [
        ("em-full as in the paper", paper),
        *(
            (what, [grid_of(name, spec, each, positions) for each in conditions])
            for what, name, spec in (
                ("… priors tuned on validation characters, centred means", "noisy", "em-full"),
                (f"… {best} instead", "noisy", best),
                (f"{best}, network {first}", first, best),
                ("prototypes of majority votes", "noisy", "protonet-mv"),
                ("the true matrices known", "noisy", "known matrices"),
            )
        ),
    ]
    rows: list[list[Any]] = [["printed in the paper, spammers unknown to us", "0.892", "", "", ""]]
    for what, found in runs:
        levels = [f"{one.mean():.3f} ± {one.half():.3f}" for one in found]
        gaps = [one.minus(other) for one, other in zip(found, paper, strict=True)]
        rows.append([what, *levels, *(f"{gap:+.3f} ± {half:.3f}" for gap, half in gaps)])
    note = (
        "As in the paper: one confusion matrix per annotator, class means around zero, two steps "
        "of EM, the embedding and all priors trained together on supports of pseudo-annotators. "
        "Its text is not available to us: network, sizes, priors and the share of spammers behind "
        f"its figure are ours. {36 * EPISODES} test episodes; differences are paired."
    )
    columns = ["method", "spammers one by one", "fixed number, a hammer at least"]
    columns += ["− paper's, one by one", "− paper's, fixed"]
    return Table("Beside the paper", columns, rows, note)


def against_clean(chosen: dict[str, str], positions: dict[str, Any]) -> Table:
    """Return paired differences of training on noisy and on clean supports."""
    rows = []
    for condition in ("independent", "fixed"):
        for spec in dict.fromkeys(["soft-votes", "em-full", *chosen.values()]):
            for name in [name for name in chosen if name != "clean"]:
                one, other = (grid_of(n, spec, condition, positions) for n in (name, "clean"))
                gaps = [one.minus(other), *(one.minus(other, ratio=ratio) for ratio in RATIOS)]
                summary = [f"{gap:+.3f} ± {half:.3f}" for gap, half in gaps]
                rows.append([condition, spec, f"{name} − clean", *summary])
    columns = ["spammers", "adapter", "networks", "mean", *(f"ratio {ratio}" for ratio in RATIOS)]
    note = (
        "Paired differences in accuracy. The interval covers the choice of episodes, not that of "
        f"training: networks were trained once. {KEPT}"
    )
    return Table("Does training on noisy supports help?", columns, rows, note)


def baselines() -> None:
    """Methods that know no source tasks, or are trained on them in other ways."""
    from few_shot_baselines import SCRATCH, TRAINED, scratch, trained

    positions: dict[str, Any] = {}
    section = Section("few-shot baselines", PAGE)
    rows = [line(name, Cells(scratch(name))) for name in SCRATCH]
    rows += [line(f"{name}, trained", Cells(trained(name))) for name in TRAINED]
    rows += [
        line(f"{spec} on clean", grid_of("clean", spec, "independent", positions)) for spec in MORE
    ]
    best = best_on("clean", positions)
    rows.append(line(f"{best} on clean", grid_of("clean", best, "independent", positions)))
    note = (
        "Independent spammers. From scratch on the pixels of the support: 720 test episodes, but "
        "144 for crowd-layer and raykar (each trains a network per episode). Trained: ridge, cnp, "
        "maml and fomaml go on from the network of clean supports with a few minutes of their own "
        "(3600 test episodes; 720 for both mamls, which take statistics of batch normalisation "
        f"from the queries). {KEPT}"
    )
    section.add(Table("Other ways to learn a small task", COLUMNS, rows, note))
    section.write()


def best_on(name: str, positions: dict[str, Any]) -> str:
    """Return the candidate that is right most often on validation characters."""
    judged = validation(name, CANDIDATES, positions)
    return max(judged, key=lambda spec: judged[spec])


def curves() -> None:
    """Accuracy against the share of spammers, annotators, labels per item and steps."""
    from dissensus.pages.charts import save_chart
    from few_shot_charts import accuracy_chart

    positions: dict[str, Any] = {}
    best = best_on("clean", positions)
    specs = [best, "em-full", "protonet-ds", "protonet-mv", "known matrices"]
    section = Section("few-shot curves", PAGE)
    panels = []
    for against, key, values in (
        ("share of spammers", "ratio", RATIOS),
        ("annotators", "annotators", ANNOTATORS),
        ("labelled items per class", "shots", SHOTS),
    ):
        found = {spec: grid_of("clean", spec, "independent", positions) for spec in specs}
        rows = [
            {
                "method": spec,
                against: value,
                "accuracy": cells_.mean(**{key: value}),
                "half": cells_.half(**{key: value}),
            }
            for spec, cells_ in found.items()
            for value in values
        ]
        panels.append(accuracy_chart(rows, against, f"By {against}"))
    rows = []
    for count in (1, 2, 3, 5, 7):
        condition = "independent" if count == 7 else f"{count} labels"
        for spec in specs:
            one = grid_of("clean", spec, condition, positions)
            summary = {"method": spec, "labels per item, of seven annotators": count}
            rows.append(
                {**summary, "accuracy": one.mean(annotators=7), "half": one.half(annotators=7)}
            )
    panels.append(accuracy_chart(rows, "labels per item, of seven annotators", "By labels"))
    few = [[row["method"], *list(row.values())[1:]] for row in rows]
    name, _, rest = best.partition("[steps=3")
    rows = []
    for family in (("em-full[steps={}]"), (name + "[steps={}" + rest)):
        for steps in (1, 2, 3, 5, 10):
            spec = family.format(steps)
            one = grid_of("clean", spec, "independent", positions)
            label = family.replace("steps={}", "…")
            summary = {"method": label, "M steps": steps}
            rows.append({**summary, "accuracy": one.mean(), "half": one.half()})
    panels.append(accuracy_chart(rows, "M steps", "By M steps", log=True))
    spec = {**panels[0], "width": 340}
    del spec["data"], spec["layer"], spec["height"], spec["title"], spec["width"]
    grid = [{k: v for k, v in panel.items() if k != "$schema"} | {"width": 300} for panel in panels]
    images = Path(__file__).parents[2] / "docs" / "images"
    save_chart(
        {**spec, "background": "white", "concat": grid, "columns": 2,
         "resolve": {"scale": {"color": "independent"}}},
        images / "few-shot.png",
    )  # fmt: skip
    table = [[row["method"], row["M steps"], row["accuracy"], row["half"]] for row in rows]
    note = "The picture is docs/images/few-shot.png; network clean, independent spammers. " + KEPT
    section.add(Table("By M steps", ["adapter", "M steps", "accuracy", "95 % ±"], table, note))
    note = "Seven annotators, of whom so many (in the mean, at least one) label every item. " + KEPT
    section.add(Table("By labels per item", ["adapter", "labels", "accuracy", "95 % ±"], few, note))
    section.write()


def crowds() -> None:
    """LabelMe and music: real annotators."""
    from few_shot_crowds import ADAPTERS, CROWDS, crowd_of, measured, validation_accuracy

    section = Section("few-shot with real annotators", PAGE)
    for name in CROWDS:
        shots = [str(each) for each in crowd_of(name).shots]
        fitted_adapters = [spec for spec in ADAPTERS if not spec.startswith("protonet")]
        judged = {spec: validation_accuracy(name, spec) for spec in fitted_adapters}
        best = max(judged, key=lambda spec: judged[spec])
        runs = [(spec, "pseudo") for spec in ADAPTERS[:4]]
        runs += [(spec, "real") for spec in fitted_adapters]
        runs += [("em-full", "unlabelled"), (best, "unlabelled"), ("soft-votes", "clean")]
        found = {run: measured(name, *run) for run in dict.fromkeys(runs)}
        floor = found["protonet-mv", "pseudo"]
        rows = []
        for (spec, mode), summary in found.items():
            cells_ = [_level(summary[each]) for each in shots]
            gaps = [_paired(summary[each], floor[each]) for each in shots]
            star = " *" if (spec, mode) == (best, "real") else ""
            rows.append([spec + star, mode, *cells_, *gaps])
        columns = ["adapter", "fitted to", *(f"{each} per class" for each in shots)]
        columns += [f"− mv at {each}" for each in shots]
        note = (
            f"Features as they are; {len(crowd_of(name).splits)} splits into source and target "
            "classes, 25 target tasks each. Intervals of levels are over splits, those of "
            "differences to protonet-mv are paired, over splits. Fitted to: pseudo-annotators, or "
            "the crowd's real labels on the source classes; unlabelled: real, and 20 further items "
            "of every class without labels; clean: true labels, the ceiling. The one marked * is "
            f"right most often on source classes with real labels ({judged[best]:.3f}). {KEPT}"
        )
        section.add(Table(name, columns, rows, note))
    section.write()


def _level(values: Any) -> str:
    means = np.mean(values, axis=1)
    return f"{means.mean():.3f} ± {1.96 * means.std(ddof=1) / len(means) ** 0.5:.3f}"


def _paired(values: Any, floor: Any) -> str:
    gap = np.mean(values, axis=1) - np.mean(floor, axis=1)
    return f"{gap.mean():+.3f} ± {1.96 * gap.std(ddof=1) / len(gap) ** 0.5:.3f}"


def _against_ours(found: dict[str, list[float]], sizes: Sequence[int]) -> tuple[Any, Any]:
    """Return columns and rows: every method at every size, and how it stands to ours."""
    rows = []
    for name in dict.fromkeys(key.split("|")[0] for key in found):
        values = [np.array(found[f"{name}|{size}"]) for size in sizes]
        ours = [np.array(found[f"ours, linear|{size}"]) for size in sizes]
        gaps = [one - other for one, other in zip(values, ours, strict=True)]
        rows.append([name, *(f"{v.mean():.3f}" for v in values), *map(_mean, gaps)])
    columns = ["method", *(f"{size} items" for size in sizes)]
    return [*columns, *(f"− ours at {size}" for size in sizes)], rows


def transfer(targets: Sequence[str] = ()) -> None:
    """A text model adapted to a set that it has not seen."""
    from few_shot_texts import ITEMS, TARGETS, curve

    section = Section("few-shot transfer of texts", PAGE)
    for target in targets or TARGETS:
        for pseudo in (True, False):
            if target == "politeness" and not pseudo:
                continue
            summary = curve(target, pseudo)
            source = "five pseudo-annotators" if pseudo else "five labels per item of its own crowd"
            note = (
                f"Held out: {target}, and {', '.join(TARGETS[target]) or 'nothing else'}. Labels: "
                f"{source}. 100 draws. Largest class {summary['share']:.3f}. Adapters chosen on "
                f"the source: {summary['chosen']}. {KEPT}"
            )
            for what, key in (("accuracy", "found"), ("balanced accuracy", "balanced")):
                title = f"{target}, {'pseudo' if pseudo else 'crowd'}: {what}"
                section.add(Table(title, *_against_ours(summary[key], ITEMS), note))
    section.write()


def _mean(values: Any) -> str:
    return f"{values.mean():+.3f} ± {1.96 * values.std(ddof=1) / len(values) ** 0.5:.3f}"


def shares() -> None:
    """Tasks whose classes are not equally frequent."""
    from few_shot_shares import FOLDS, ITEMS, METHODS, left_out

    section = Section("few-shot tasks of uneven classes", PAGE)
    names = [name for some in FOLDS for name in some]
    runs = [(name, True) for name in names] + [
        (name, False) for name in ("md", "mbic", "sentiment")
    ]
    found = {run: left_out(*run) for run in runs}
    level = {
        key: {each: np.mean(values, axis=0) for each, values in one["found"].items()}
        for key, one in found.items()
    }
    for column, what in enumerate(("accuracy", "balanced accuracy", "log-loss")):
        rows: list[list[Any]] = []
        for (name, pseudo), one in found.items():
            for method in METHODS if column < 2 else METHODS[:3]:
                cells_ = [f"{level[name, pseudo][f'{method}|{n}'][column]:.3f}" for n in ITEMS]
                labels = "pseudo-annotators" if pseudo else "their annotators"
                rows.append([name, labels, f"{one['largest']:.2f}", method, *cells_])
        for method in METHODS if column < 2 else METHODS[:3]:
            means = [
                np.mean([level[name, True][f"{method}|{n}"][column] for name in names])
                for n in ITEMS
            ]
            rows.append(
                ["mean of ten", "pseudo-annotators", "", method, *(f"{m:.3f}" for m in means)]
            )
        columns = ["held out", "labels", "larger class", "method", *(f"{n} items" for n in ITEMS)]
        weights = sorted({round(one["weight"], 2) for one in found.values()})
        note = (
            "em-kinds[steps=3] on MiniLM's vectors, tuned on the sets of other folds; 40 draws. "
            f"Learned weights of class frequencies, by fold: {', '.join(map(str, weights))}."
        )
        section.add(Table(f"Uneven classes: {what}", columns, rows, note))
    section.write()


def active_part() -> None:
    """What labels to ask for: accuracy against the share of all labels."""
    from few_shot_extras import SHARES, active
    from revealing import POLICIES

    positions: dict[str, Any] = {"clean": vectors("clean")}
    valid, test = positions["clean"]
    best = best_on("clean", positions)
    adapter, plain = fitted("clean", best, valid), fitted("clean", "em-full", valid)
    section = Section("few-shot asking", PAGE)
    rows = []
    for spammers in (1, 2, 3, 4):
        ratio = spammers / 5
        full = np.array(active("em-full", plain, test, "random", ratio)["accuracy"])[-1]
        shown = [*["–"] * (len(SHARES) - 1), f"{full.mean():.3f}"]
        rows.append([spammers, "em-full, all labels", *shown, "–", "–"])
        for policy in POLICIES:
            summary = np.array(active(best, adapter, test, policy, ratio)["accuracy"])
            reach = [_reached(summary, summary[-1], SHARES), _reached(summary, full, SHARES)]
            rows.append([spammers, policy, *(f"{m:.3f}" for m in summary.mean(axis=1)), *reach])
    columns = ["spammers of five", "policy", *(f"{share:.0%}" for share in SHARES)]
    columns += ["as with all labels at", "as em-full with all at"]
    note = (
        f"Adapter {best}, network clean; five classes, five items each, five annotators, 200 "
        "episodes; every item begins with one label, then one at a time. The last columns are "
        "the least shares of all labels at which a policy is not surely less right (paired "
        f"interval, 95 %) than the same adapter, or plain EM, with all of them. {KEPT}"
    )
    section.add(Table("Asking for labels one by one", columns, rows, note))
    section.write()


def _reached(summary: Any, full: Any, shares: Sequence[float]) -> str:
    """Return the least share at which accuracies are not surely below those with all labels."""
    for share, values in zip(shares, summary, strict=True):
        gap = values - full
        if gap.mean() + 1.96 * gap.std(ddof=1) / len(gap) ** 0.5 >= 0:
            return f"{share:.0%}"
    return "–"


def sources() -> None:
    """Sources with wrong labels, and items on which every annotator guesses."""
    from few_shot_extras import LOSSES, hard_items, noisy_source

    section = Section("few-shot from noisy sources", PAGE)
    rates = (0.0, 0.2, 0.4)
    rows = []
    for loss in LOSSES:
        found = [noisy_source(loss, rate) for rate in rates]
        summary = [f"{one['accuracy']:.3f} ± {one['half']:.3f}" for one in found]
        rows.append([loss, *summary, *(f"{one['clean']:.3f}" for one in found)])
    columns = ["loss on queries", *(f"{rate:.0%} wrong" for rate in rates)]
    columns += [f"clean support, {rate:.0%}" for rate in rates]
    note = (
        "Omniglot, a network of 32 channels trained for 400 batches, one seed; three annotators "
        "label supports and queries of the source, each wrong at the rate. Test: 1280 episodes "
        f"with em-full, pseudo-annotators of the plain crowd, or true labels. {KEPT}"
    )
    section.add(Table("Sources with wrong labels", columns, rows, note))
    rows = []
    for share in (0.0, 0.2, 0.4):
        for spec in ("em-full[steps=3]", "em-item-confusion[steps=3]", "em-one-coin[steps=3]"):
            one = hard_items(spec, share)
            rows.append([share, spec, one["accuracy"], one["half"], one["log_loss"]])
    note = "Gaussian tasks; a ninth feature is the difficulty of an item. 1280 test episodes."
    columns = ["share of hard items", "adapter", "accuracy", "95 % ±", "log-loss"]
    section.add(Table("Items on which every annotator guesses", columns, rows, note))
    section.write()


def view() -> None:
    """Draw a task of test characters: its votes, and its classes after steps of EM."""
    from dissensus.deep.meta.few_shot import FewShotCrowd
    from dissensus.deep.meta.pseudo_annotators import annotate

    valid, test = vectors("clean")
    model = FewShotCrowd(best_on("clean", {"clean": (valid, test)}), sizes=WIDE, tuning=100)
    model.fit(np.asarray(valid.x), valid.label)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(test.n_classes)[:5]
    support, rest = (
        np.concatenate([test.members[each][some] for each in chosen])
        for some in (slice(5), slice(5, None))
    )
    crowd = PseudoAnnotators(spammers=(0.6, 0.6), fixed=True)
    truth = np.repeat(np.arange(5), 5)
    label = annotate(rng, crowd.draw(rng, 1, 5, 5), truth[None])[0]
    x = np.asarray(test.x)
    known = np.concatenate([truth, np.repeat(np.arange(5), 15)])
    figure = model.adapt(x[support], label).view(known, new=x[rest]).plot()
    figure.save(Path(__file__).parents[2] / "docs" / "images" / "few-shot-task.png")


PARTS: dict[str, Callable[..., None]] = {
    "omniglot": omniglot,
    "baselines": baselines,
    "curves": curves,
    "crowds": crowds,
    "transfer": transfer,
    "shares": shares,
    "active": active_part,
    "sources": sources,
    "view": view,
}


def main() -> None:
    """Measure, and write the page."""
    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--part", default=",".join(PARTS), help=f"with commas: {', '.join(PARTS)}")
    summary.add_argument("--nets", default=",".join(NETS), help="of omniglot")
    summary.add_argument("--targets", help="of transfer; all by default")
    given = summary.parse_args()
    torch.set_num_threads(1)
    some = {"omniglot": given.nets, "transfer": given.targets}
    for part in given.part.split(","):
        PARTS[part](*([some[part].split(",")] if some.get(part) else []))


if __name__ == "__main__":
    main()
