"""Models of peerannot that train a network: AUM, WAUM, CoNAL and CrowdLayer."""

import json

import numpy as np
import pytest

from ..deep_sets import shapes, torch  # noqa: F401

pd = pytest.importorskip("pandas", reason="their tables are pandas'")

from dissensus.peerannot import models  # noqa: E402


class Images:
    """A dataset of vectors with names of files, as an image folder of torchvision has them."""

    def __init__(self, x, label, names):
        self.x, self.true_labels = torch.tensor(x, dtype=torch.float32), label
        self.samples = self.base_samples = [
            (f"train/{n}", int(y)) for n, y in zip(names, label, strict=True)
        ]


class Rows(torch.utils.data.Dataset):
    """Rows of a dataset, with whatever follows the input."""

    def __init__(self, dataset, rows):
        self.dataset, self.rows = dataset, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        task, *more = self.rows[number]
        return (self.dataset.x[task], *more)


@pytest.fixture
def hard():
    """Tasks in two clusters; the file of the first one is task 39, and its label is wrong."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 20)
    x = np.eye(2)[truth] + rng.normal(0, 0.05, (40, 2))
    given = truth.copy()
    given[0] = 1
    names = [f"picture-{39 - task}.png" for task in range(40)]
    answers = {str(39 - task): {str(w): int(given[task]) for w in range(3)} for task in range(40)}
    return Images(x, given, names), answers, truth


def network():
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2)
    return model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.05)


def test_aum_finds_the_task_with_the_wrong_label(hard):
    dataset, _, _ = hard
    rows = [(task, 0, int(dataset.true_labels[task]), task) for task in range(40)]
    tasks = torch.utils.data.DataLoader(Rows(dataset, rows), batch_size=8)
    model, criterion, optimizer = network()
    aum = models.AUM(tasks, 2, model, criterion, optimizer, 10, verbose=True, use_pleiss=True)
    aum.run(alpha=0.01)
    assert list(aum.aums.columns) == ["sample_id", "filename", "AUM_yang", "AUM_pleiss"]
    assert len(aum.aums) == 40
    assert aum.too_hard.tolist() == [[0, 39]]


@pytest.mark.parametrize("kind", ["WAUM", "WAUM_perworker"])
def test_waum_finds_it_too_and_labels_the_others(kind, hard):
    dataset, answers, truth = hard
    rows = [
        (task, answers[str(39 - task)][str(w)], w, task, task)
        for task in range(40)
        for w in range(3)
    ]
    tasks = torch.utils.data.DataLoader(Rows(dataset, rows), batch_size=8)
    model, criterion, optimizer = network()
    waum = models.identification_strategies[kind](
        *(tasks, answers, 2, model, criterion, optimizer, 10), maxiterDS=50, n_workers=3
    )
    waum.run(alpha=0.01)
    assert list(waum.waum.columns) == ["index", "task", "waum"]
    assert waum.too_hard.tolist() == [[0, 39]]
    soft = waum.get_probas()  # by the number of the task
    assert soft[39].tolist() == [0, 0]
    assert np.array_equal(waum.get_answers()[:39], truth[::-1][:39])


@pytest.mark.parametrize("name", ["CoNAL", "CrowdLayer"])
def test_deep_strategies_train_on_a_folder(name, shapes):  # noqa: F811
    strategy = models.agg_deep_strategies[name](
        tasks_path=shapes,
        answers=shapes / "answers.json",
        model="conv4",
        n_classes=3,
        optimizer="Adam",
        n_epochs=2,
        scale=1e-4,
        output_name=f"run-{name}",
        img_size=16,
        lr=0.01,
        batch_size=8,
        num_workers=1,
        n_workers=6,
        milestones=(50,),
    )
    strategy.run(milestones=(50,))
    results = json.loads((shapes / "results" / f"run-{name}.json").read_text())
    assert len(results["train_loss"]) == 2
    assert 0 <= results["test_accuracy"] <= 100
    assert (shapes / "best_models" / f"run-{name}").is_dir()
