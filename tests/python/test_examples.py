"""The examples: three programs that train equal networks, the demo that compares the programs, and GPT in two languages."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys

import pytest

import yoke

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = {
    "Python": [sys.executable, str(EXAMPLES / "fashion_mnist.py")],
    "Lua": [shutil.which("lua5.4") or "lua", str(EXAMPLES / "fashion_mnist.lua")],
    "C": [os.path.join(os.environ["YOKE_BUILD_DIR"], "examples", "fashion_mnist")],
}
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # slow as well: skips cases whose lines other cases run
once = pytest.mark.skipif(SANITIZED, reason="another case runs the same lines")
each_language = pytest.mark.parametrize("language", PROGRAMS)


def few(cases):
    """The first two of many cases under a sanitizer, else all."""
    return cases[:2] if SANITIZED else cases


def run(command, *options):
    return subprocess.run([*command, *options], capture_output=True, text=True, errors="replace", timeout=600)


@pytest.mark.parametrize("threads", ["2"] if SANITIZED else ["1", "2"])
@pytest.mark.parametrize("amp", ["bf16"] if SANITIZED else ["off", "bf16", "f16"])
def test_three_languages_give_the_same_losses(threads, amp):
    demo = run([sys.executable, str(EXAMPLES / "demo.py")], "--threads", threads, "--limit", "3000", "--epochs", "1",
               "--accuracy", "0.5", "--amp", amp)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "identical in all three languages" in demo.stdout


def test_the_demo_fails_when_the_accuracy_is_not_reached():
    demo = run([sys.executable, str(EXAMPLES / "demo.py")], "--threads", "1", "--limit", "128", "--epochs", "1")
    assert demo.returncode == 1
    assert "0.87 is expected" in demo.stdout


@once
def test_the_demo_takes_bfloat16_where_the_processor_multiplies_it():
    demo = run([sys.executable, str(EXAMPLES / "demo.py")], "--limit", "256", "--epochs", "1", "--accuracy", "0")
    amp = "bf16" if yoke.device("auto").supports("bfloat16", "tensor_cores") else "off"
    assert f"amp {amp}" in demo.stdout, demo.stdout + demo.stderr


@once
@each_language
def test_amp_changes_the_losses_a_little(language):
    def losses(amp):
        done = run(PROGRAMS[language], "--threads", "1", "--limit", "1280", "--epochs", "1", "--losses", "--amp", amp)
        assert done.returncode == 0, done.stderr
        return [float.fromhex(x) for x in done.stdout.splitlines()[-1].split()[1:]]

    plain = losses("off")
    for amp in ("bf16", "f16"):
        mixed = losses(amp)
        assert mixed != plain and mixed == pytest.approx(plain, rel=0.05), amp


@once
@each_language
def test_another_seed_gives_other_losses_and_one_seed_the_same(language):
    def losses(seed):
        done = run(PROGRAMS[language], "--threads", "1", "--limit", "512", "--epochs", "1", "--losses", "--seed", seed)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    assert losses("1") == losses("1") != losses("2")


@each_language
@pytest.mark.parametrize("options, said", few([
    (["--data", "/no/such/folder"], "apt-get install dataset-fashion-mnist"),
    (["--device", "abacus"], "'abacus'"),
    (["--epochs", "0"], "--epochs is 0; it must be at least 1"),
    (["--limit", "0"], "--limit is 0; it must be at least 1"),
    (["--limit", "-5"], "--limit is -5; it must be at least 1"),
    (["--threads", "-1"], "--threads is -1; it must be at least 0"),
    (["--seed", "x"], "'x'"),
    (["--limit", ""], "''"),
    (["--limit", "2x"], "--limit"),
    (["--amp", "f8"], "f8"),
    (["--amp", "f8"], "bf16"),
    (["--wheels", "4"], "--"),
]))
def test_bad_options_are_told_without_a_stack_trace(language, options, said):
    done = run(PROGRAMS[language], "--limit", "1", *options)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr and "stack traceback" not in done.stderr


@each_language
def test_a_damaged_file_is_named(language, tmp_path):
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b\x08 this is no gzip file")
    done = run(PROGRAMS[language], "--data", str(tmp_path))
    assert done.returncode == 1
    assert "train-images-idx3-ubyte.gz" in done.stderr


GPT = {"Python": [sys.executable, str(EXAMPLES / "gpt.py")],
       "Lua": [shutil.which("lua5.4") or "lua", str(EXAMPLES / "gpt.lua")]}
TINY = ["--layers", "2", "--width", "32", "--heads", "2", "--context", "16", "--batch", "4", "--steps", "6", "--threads", "1",
        "--sample", "20", "--top-k", "5"]


@pytest.mark.parametrize("command", [*PROGRAMS.values(), *GPT.values()], ids=lambda command: pathlib.Path(command[-1]).name)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_is_printed_and_nothing_trained(command, option):
    done = run(command, option)
    assert done.returncode == 0 and done.stderr == "" and "usage" in done.stdout
    for name in ("--device", "--amp", "--seed", "--threads", "--losses"):
        assert name in done.stdout


@pytest.mark.parametrize("amp", ["bf16"] if SANITIZED else ["off", "bf16", "f16"])
def test_gpt_gives_the_same_losses_and_text_in_both_languages(amp):
    losses, texts = {}, {}
    for language, command in GPT.items():
        done = run(command, *TINY, "--amp", amp, "--losses", "--seed", "3")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr.count("step ") == 6  # no bar: standard error is no terminal
        told, texts[language] = done.stdout.split("text: ")
        losses[language] = [float.fromhex(x) for x in told.split("losses: ")[1].split()]
    assert losses["Python"] == losses["Lua"] and texts["Python"] == texts["Lua"]
    assert texts["Lua"].startswith("You may ") and len(texts["Lua"]) > 16
    assert len(losses["Lua"]) == 6 and losses["Lua"][0] == pytest.approx(5.545, abs=0.1)
    assert losses["Lua"][-1] < losses["Lua"][0]


@pytest.fixture
def tokens(tmp_path):
    """A file of 3,000 tokens of three kinds, each followed by the same one."""
    path = tmp_path / "tokens.bin"
    path.write_bytes(struct.pack("<3H", 5, 50256, 300) * 1000)
    return path


def test_gpt2_learns_the_same_tokens_in_both_languages(tokens):
    losses, written = {}, {}
    for language, command in GPT.items():
        done = run(command, *TINY, "--preset", "gpt2", "--tokens", tokens, "--losses", "--steps", "8", "--lr", "0.02", "--top-k", "1")
        assert done.returncode == 0, done.stdout + done.stderr
        told, written[language] = done.stdout.split("tokens: ")
        losses[language] = [float.fromhex(x) for x in told.split("losses: ")[1].split()]
    assert losses["Python"] == losses["Lua"] and written["Python"] == written["Lua"]
    assert losses["Lua"][0] == pytest.approx(10.83, abs=0.2) and losses["Lua"][-1] < losses["Lua"][0] - 1
    first, *others = map(int, written["Lua"].split())
    assert first == 5 and len(others) == 20 and all(0 <= token < 50304 for token in others)


@once
def test_the_preset_gpt2_has_124_million_parameters_and_a_head_that_is_tied():
    sys.path.insert(0, str(EXAMPLES))
    import gpt

    o = gpt.read_options(["--preset", "gpt2"])
    assert (o.layers, o.width, o.heads, o.context, o.vocabulary, o.tied) == (12, 768, 12, 1024, 50304, True)
    net = gpt.GPT(1, o.width, o.heads, o.context, o.vocabulary, o.tied)
    assert net.head.weight is net.byte.weight and "head.weight" not in dict(net.named_parameters())
    block = sum(p.numel for p in net.blocks.parameters())
    assert sum(p.numel for p in net.parameters()) + 11 * block == 124_475_904
    assert gpt.read_options(["--preset", "gpt2", "--layers", "3"]).layers == 3


@pytest.mark.parametrize("language", GPT)
@pytest.mark.parametrize("content, options, said", few([
    (b"\0" * 99, [], "has 99 bytes; it must have two bytes for each token"),
    (b"\0" * 32, [], "more tokens than --context 16"),
    (b"\0\1" * 20, [], "has the token 256; it must be below --vocabulary 256"),
    (b"\0\0" * 20, ["--vocabulary", "65537"], "--vocabulary is 65537; it must be 256 to 65536"),
    (None, [], "Name another file with --tokens"),
]))
def test_gpt_tells_bad_tokens(tmp_path, language, content, options, said):
    if content is not None:
        (tmp_path / "bad.bin").write_bytes(content)
    done = run(GPT[language], *TINY, "--tokens", tmp_path / "bad.bin", *options)
    assert done.returncode == 1 and said in done.stderr
    assert "Traceback" not in done.stderr and "stack traceback" not in done.stderr


def test_gpt_gives_the_same_losses_whatever_it_drops():
    losses, peaks = set(), {}
    for language, dropped in (("Python", "off"), ("Python", "full"), ("Python", "matmul"), ("Python", "0.5"), ("Lua", "full"), ("Lua", "matmul"),
                              ("Lua", "0.5")):
        done = run(GPT[language], *TINY, "--context", "64", "--steps", "3", "--amp", "bf16", "--losses", "--sample", "0",
                   "--checkpoint", dropped)
        assert done.returncode == 0, done.stdout + done.stderr
        told = done.stdout.split("losses: ")[1].split("\n")[0]
        losses.add(tuple(float.fromhex(x) for x in told.split()))
        peaks[language, dropped] = float(done.stdout.split("peak memory: ")[1].split()[0])
    assert len(losses) == 1
    assert peaks["Python", "full"] < peaks["Python", "matmul"] < peaks["Python", "off"]
    assert peaks["Lua", "full"] < peaks["Lua", "matmul"]


@pytest.mark.parametrize("language", GPT)
@pytest.mark.parametrize("options, said", few([
    (["--text", "/no/such/file"], "Name another file with --text"),
    (["--context", "40000"], "more than --context 40000"),
    (["--steps", "0"], "--steps is 0; it must be at least 1"),
    (["--batch", "0"], "--batch is 0; it must be at least 1"),
    (["--temperature", "-1"], "--temperature is -1.0; it must be at least 0"),
    (["--temperature", "nan"], "--temperature is "),
    (["--top-k", "300"], "--top-k is 300; it must be 1 to 256"),
    (["--top-k", "0"], "--top-k is 0; it must be 1 to 256"),
    (["--prompt", ""], "--prompt is ''"),
    (["--sample", "1.5"], "'1.5'"),
    (["--lr", "fast"], "'fast'"),
    (["--heads", "3"], "num_heads"),
    (["--amp", "f8"], "bf16"),
    (["--preset", "gpt9"], "gpt2"),
    (["--checkpoint", "some"], "matmul"),
    (["--wheels", "4"], "--"),
]))
def test_gpt_tells_bad_options_without_a_stack_trace(language, options, said):
    done = run(GPT[language], *TINY, *options)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr and "stack traceback" not in done.stderr


@once
def test_gpt_at_temperature_0_writes_what_is_likeliest():
    texts = set()
    for language, command in GPT.items():
        for k in ("1", "9"):
            done = run(command, *TINY, "--temperature", "0", "--top-k", k)
            assert done.returncode == 0, done.stderr
            texts.add(done.stdout.split("text: ")[1])
    assert len(texts) == 1
