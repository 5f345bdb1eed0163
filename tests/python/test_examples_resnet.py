"""The residual network of the examples, in two languages, on a few pictures."""
import gzip
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LANGUAGES = {"Python": [sys.executable, str(EXAMPLES / "resnet.py")], "Lua": [shutil.which("lua5.4") or "lua", str(EXAMPLES / "resnet.lua")]}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(4)
    for part, count in ("train", 256), ("t10k", 32):
        labels = rng.integers(0, 10, count).astype(np.uint8)
        images = rng.integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels):  # the place of a bar is the class
            image[2 * label:2 * label + 3] += 150
        for name, sizes, values in (("images-idx3", images.shape, images), ("labels-idx1", labels.shape, labels)):
            with gzip.open(folder / f"{part}-{name}-ubyte.gz", "wb") as file:
                file.write(struct.pack(f">BBBB{len(sizes)}I", 0, 0, 8, len(sizes), *sizes) + values.tobytes())
    return str(folder)


def run(language, *options):
    return subprocess.run([*LANGUAGES[language], "--threads", "1", "--width", "4", *options], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "YOKE_DEVICE": "cpu"})


def told(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("options", [["--amp", "off", "--epochs", "4"], ["--amp", "bf16"], ["--amp", "f16", "--depth", "50"], ["--depth", "50", "--image-size", "40"]],
                         ids=" ".join)
def test_both_languages_give_the_same_losses(options, pictures):
    runs = [told(run(language, "--data", pictures, "--epochs", "1", "--losses", "--seed", "2", *options)) for language in LANGUAGES]
    losses = [[float.fromhex(x) for x in one["losses"].split()] for one in runs]
    assert losses[0] == losses[1] and len(losses[0]) == (8 if "4" in options else 2)
    assert runs[0]["test accuracy"] == runs[1]["test accuracy"]
    if "4" in options:
        assert losses[0][-1] < losses[0][0]


def test_each_goes_on_from_what_the_other_has_saved(pictures, tmp_path):
    whole = told(run("Python", "--data", pictures, "--epochs", "2", "--losses"))["losses"]
    part = ["--data", pictures, "--epochs", "2", "--losses", "--save", str(tmp_path / "run"), "--every", "1"]
    assert [float.fromhex(x) for x in told(run("Lua", *part))["losses"].split()] == [float.fromhex(x) for x in whole.split()]
    again = run("Python", *part)
    assert "4 of 4 steps are done" in again.stderr and told(again)["losses"] == whole
    refused = run("Lua", *part, "--depth", "50")
    assert refused.returncode == 1 and "--depth 18" in refused.stderr and "--depth 50" in refused.stderr


def test_parameters_have_torchvisions_names():
    sys.path.insert(0, str(EXAMPLES))
    from resnet import ResNet
    names = list(ResNet(50, 4, 28).state_dict())
    assert len(names) == 320  # as in torchvision's resnet50: 161 parameters, and three buffers for each of 53 batch norms
    for name in ("conv1.weight", "bn1.num_batches_tracked", "layer1.0.downsample.0.weight", "layer4.2.bn3.running_var", "fc.bias"):
        assert name in names
    assert len(list(ResNet(18, 4, 224).parameters())) == 62 and len(list(ResNet(152, 4, 28).parameters())) == 467


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("options, said", [(["--depth", "34"], "18"), (["--width", "0"], "--width is 0; it must be at least 1"),
                                           (["--image-size", "20"], "--image-size is 20; it must be at least 28"), (["--image-size", "999999999999"], "it must be at most 4096"), (["--image-size", "x"], "'x'"), (["--wheels", "4"], "--")])
def test_bad_options_are_told_without_a_stack_trace(language, options, said):
    done = run(language, *options)
    assert done.returncode in (1, 2) and said in done.stderr and "raceback" not in done.stderr, done


@pytest.mark.parametrize("language", LANGUAGES)
def test_help_is_printed(language):
    done = run(language, "--help")
    assert done.returncode == 0 and "--depth" in done.stdout and "--image-size" in done.stdout and done.stderr == ""
