"""Sound as an input: spectrograms take the path of videos."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dissensus.base.names import as_names
from dissensus.deep.nn import Sounds, Videos, VideosWithSound, as_inputs, encoder_for, read_inputs
from dissensus.deep.nn.inputs import empty_inputs
from dissensus.deep.nn.media import RATE, frames_of, log_mel, sound_frames, wave_of
from dissensus.errors import DataError

from ..support import benchmark
from .test_videos import BLUE, RED, write_video

av = pytest.importorskip("av", reason="PyAV is not installed: pip install '.[video]'")


def tones(*hertz, seconds=0.3, loud=0.5, rate=RATE):
    """Return tones, one after the other."""
    time = np.arange(round(seconds * rate)) / rate
    return np.concatenate([loud * np.sin(2 * np.pi * each * time) for each in hertz])


def write_sound(path, wave, rate=RATE, channels=1):
    from scipy.io import wavfile

    samples = np.repeat((32767 * wave).astype(np.int16)[:, None], channels, axis=1)
    wavfile.write(path, rate, samples)
    return path


def write_both(path, colours, wave):
    """Write a video with sound; every colour is there for half a second."""
    silent = write_video(path.with_name("silent.mp4"), colours, each=6)
    with av.open(str(silent)) as source, av.open(str(path), "w") as file:
        video = file.add_stream_from_template(source.streams.video[0])
        audio = file.add_stream("aac", rate=RATE)
        audio.layout = "mono"
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = video
                file.mux(packet)
        for start in range(0, len(wave) // 1024 * 1024, 1024):
            block = wave[None, start : start + 1024].astype(np.float32)
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
            frame.rate, frame.pts = RATE, start
            file.mux(audio.encode(frame))
        file.mux(audio.encode())
    silent.unlink()
    return path


def loudest(frames):
    """Return the row of every frame that is brightest."""
    return frames[:, 0].mean(dim=2).argmax(dim=1).tolist()


def test_a_louder_tone_is_brighter_and_a_higher_one_further_up():
    low, high = (log_mel(tones(hertz)) for hertz in (300, 4000))
    assert low.mean(axis=1).argmax() < high.mean(axis=1).argmax()
    assert log_mel(tones(1000, loud=1.0)).max() == pytest.approx(1, abs=0.02)
    quiet, loud = (log_mel(tones(1000, loud=each)).max() for each in (0.05, 0.5))
    assert loud - quiet == pytest.approx(20 / 80, abs=0.01)  # a factor of ten is 20 dB of 80
    assert not log_mel(np.zeros(RATE)).any()
    assert log_mel(np.zeros(3)).shape == (64, 1)


def test_frames_are_equal_parts_of_time():
    frames = sound_frames(tones(300, 1000, 4000), 6, 16)
    assert frames.shape == (6, 3, 16, 16)
    rows = loudest(frames)
    assert rows[0] > rows[2] > rows[4]  # row 0 is the top
    assert rows[::2] == rows[1::2]
    assert sound_frames(tones(300, seconds=0.01), 4, 8).shape == (4, 3, 8, 8)


@pytest.mark.parametrize(("rate", "channels"), [(RATE, 1), (44_100, 2)])
def test_files_of_any_rate_and_channels_sound_alike(tmp_path, rate, channels):
    wave = tones(300, 1000, 4000, rate=rate)
    found = wave_of(write_sound(tmp_path / "a.wav", wave, rate, channels))
    assert len(found) == pytest.approx(0.9 * RATE, rel=0.01)
    expected = sound_frames(tones(300, 1000, 4000), 3, 16)
    assert loudest(sound_frames(found, 3, 16)) == loudest(expected)


def test_what_has_no_sound_is_refused_in_one_line(tmp_path):
    (tmp_path / "a.wav").write_text("no sound")
    for name in ("a.wav", "b.wav"):
        with pytest.raises(DataError, match="not a readable sound"):
            wave_of(tmp_path / name)
    with pytest.raises(DataError, match="no sound in it, only pictures"):
        wave_of(write_video(tmp_path / "a.mp4", [RED]))
    with pytest.raises(DataError, match="no pictures in it, only sound"):
        frames_of(write_sound(tmp_path / "c.wav", tones(300)), 2, 8)


def test_folders_and_tables_of_sounds_are_read(tmp_path):
    for name in ("one", "two"):
        write_sound(tmp_path / f"{name}.wav", tones(300))
    found = read_inputs(tmp_path, as_names(["two", "one"]), frames=3)
    assert isinstance(found, Sounds)
    assert ([path.stem for path in found.paths], found.frames) == (["two", "one"], 3)
    (tmp_path / "table.csv").write_text("item,audio\n1,one.wav\n2,two.wav\n")
    assert read_inputs(tmp_path / "table.csv", as_names(["2"])).kind == "sounds"
    assert as_inputs([tmp_path / "one.wav"]).kind == "sounds"
    for kind in ("sounds", "videos with sound"):
        assert empty_inputs(kind).kind == kind


def test_image_encoders_take_sounds_and_videos_with_sound(tmp_path):
    path = write_both(tmp_path / "a.mp4", [RED, BLUE], tones(300, 4000, seconds=0.5))
    both = read_inputs(tmp_path, as_names(["a"]), frames=4, sound=True)
    plain = read_inputs(tmp_path, as_names(["a"]), frames=4)
    assert (type(both), type(plain)) == (VideosWithSound, Videos)
    assert not np.isin(both.keys(), plain.keys()).any()
    frames = both.load(path, 16)
    assert frames.shape == (8, 3, 16, 16)
    assert_allclose(frames[:4], frames_of(path, 4, 16))
    low, _, _, high = loudest(frames[4:])
    assert low > high
    tokens = encoder_for("patches[size=16,side=8]").tokens(frames[None])
    assert tokens.values.shape == (1, 8, 4, 192)


def test_annotators_who_listen_to_other_moments_have_different_maps():
    from dissensus.deep.nn.features import features_of
    from dissensus.deep.tendency.maps import attention_maps
    from dissensus.registry import tendencies

    drawn = benchmark("attentive_crowds").simulate_tendency(
        kind="video with sound", n_items=240, n_annotators=2, groups=2, positions=4, seed=1
    )
    assert drawn.inputs.shape == (240, 4, 3, 16, 16)
    features = features_of(drawn.inputs, "patches[size=16,side=8]", tokens=True)
    spec = "query[width=32,layers=1,heads=4,hidden=64,fc=32,fits=1,frame_queries=2,"
    spec += "video_layers=1,epochs=20,lr=0.005,patience=0]"
    model = tendencies.create(spec).fit(features, drawn.annotations)
    assert drawn.pointing(attention_maps(model, features).values) > 0.9
