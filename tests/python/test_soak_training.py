"""Mixed precision trains as well as float32 does: whole runs of the examples, which `./dev soak` alone has time for."""

import os
import pathlib
import statistics
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
pytestmark = [
    pytest.mark.skipif("YOKE_SOAK" not in os.environ, reason="takes minutes; ./dev soak runs it"),
    pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="checks numbers; shorter runs check memory"),
]


def trained(example, *options):
    """Returns the lines "name: value" of an example's output."""
    command = [sys.executable, str(EXAMPLES / example), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr
    print(" ".join(command), done.stdout, sep="\n")
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


def accuracies(example, *options):
    return [float(trained(example, "--seed", seed, *options)["test accuracy"]) for seed in range(3)]


@pytest.fixture(scope="module")
def plain_accuracies():
    return accuracies("fashion_mnist.py")


@pytest.mark.parametrize("amp", ["bf16", "f16"])
def test_fashion_mnist_is_at_most_half_a_point_less_accurate(amp, plain_accuracies):
    mixed = accuracies("fashion_mnist.py", "--amp", amp)
    lost = statistics.mean(plain - other for plain, other in zip(plain_accuracies, mixed))
    assert lost <= 0.005, (plain_accuracies, mixed)


def test_a_resnet_learns_in_two_epochs_and_in_bf16_as_well():
    options = "--width", 16, "--epochs", 2
    plain, mixed = (accuracies("resnet.py", *options, "--amp", amp) for amp in ("off", "bf16"))
    assert statistics.mean(plain) >= 0.915, plain
    assert statistics.mean(plain) - statistics.mean(mixed) <= 0.005, (plain, mixed)


def gpt_loss(amp):
    """The mean loss of the last 20 steps of 200, of the example's GPT of 6 layers."""
    lines = trained("gpt.py", "--amp", amp, "--steps", 200, "--sample", 0, "--losses")
    return statistics.mean(float.fromhex(x) for x in lines["losses"].split()[-20:])


@pytest.fixture(scope="module")
def plain_loss():
    return gpt_loss("off")


@pytest.mark.parametrize("amp", ["bf16", "f16"])
def test_the_loss_of_gpt_agrees_within_one_percent(amp, plain_loss):
    assert gpt_loss(amp) == pytest.approx(plain_loss, rel=0.01)
