"""The examples over NCCL on emulated cards, a card for each rank: the main job and a GPT. All ranks end with the same parameters, to the bit."""
import json
import os
import shutil
import sys

import pytest

import yoke
from cards_of_ranks import EXAMPLES, IS_BUILT, PROGRAMS, machine, write_pictures, yoke_run

LUA = shutil.which("lua5.4") or shutil.which("lua")
SOAKS = "YOKE_SOAK" in os.environ
STEPS = 3
pytestmark = pytest.mark.skipif(not IS_BUILT or "libasan" in os.environ.get("LD_PRELOAD", ""),
                                reason="a sanitizer, or no emulated CUDA module, no fake NVML or no command was built")

# Runs an unchanged example, and writes the final values of its network: FOLDER EXAMPLE OPTION...
HELD = {"Python": """
import os, runpy, sys
import yoke
held = []
class Held(yoke.DistributedDataParallel):
    def __init__(self, module, *args, **kwargs):
        super().__init__(module, *args, **kwargs)
        held.extend([module, self.group])
yoke.DistributedDataParallel = Held
folder, *sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
with open(os.path.join(folder, "rank" + os.environ["RANK"]), "wb") as file:
    for each in held[0].parameters(): file.write(each.detach().cpu().numpy().tobytes())
print("over", repr(held[1]))
""", "Lua": """
local yoke = require "yoke"
local original, held, group = yoke.DistributedDataParallel, nil, nil
yoke.DistributedDataParallel = function(module, options)
    held, group = module, options.group
    return original(module, options)
end
local folder = arg[1]
arg = table.move(arg, 2, #arg, 0, {})
dofile(arg[0])
local file = assert(io.open(folder .. "/rank" .. os.getenv "RANK", "wb"))
for _, each in ipairs(held:parameters()) do file:write(each:detach():tobytes()) end
file:close()
print("over " .. tostring(group))
"""}


def saved_bits(folder):
    """Returns the parameters that rank 0 of the program in C has saved."""
    net = yoke.CheckpointManager(str(folder)).load()["net"]
    return b"".join(net[f"{layer}.{name}"].numpy().tobytes() for layer in (0, 2, 4) for name in ("weight", "bias"))


def main_job(language, folder, environment, ranks, *options):
    """Returns the losses that rank 0 prints, and the bits of each rank's parameters; in C, only the bits of rank 0."""
    folder.mkdir()
    if language == "C":
        command = [*PROGRAMS["C"], "--save", folder]
    else:
        (folder / "held").write_text(HELD[language], encoding="utf-8")
        interpreter, example = PROGRAMS[language]
        command = [interpreter, folder / "held", folder, example]
    outs, errors = yoke_run([*command, *options], environment, ranks)
    assert all("host's memory" not in error for error in errors) and (language == "C" or all("; nccl:" in out for out in outs)), (outs, errors)
    line, = (line for line in outs[0].splitlines() if line.startswith("losses: "))
    return [float.fromhex(loss) for loss in line.split()[1:]], [saved_bits(folder)] if language == "C" else [(folder / f"rank{rank}").read_bytes() for rank in range(ranks)]


@pytest.mark.parametrize("ranks, amp", [(2, "off"), *[(2, "bf16"), (4, "off"), (4, "f16")] * SOAKS])
def test_the_main_job_has_the_same_parameters_on_all_ranks_and_in_all_languages(tmp_path, ranks, amp):
    environment = machine(tmp_path / "machine", ranks, FAKE_CUDA_SEED="3", FAKE_NCCL_LATE="1")
    pictures = write_pictures(tmp_path / "pictures", 4 * ranks)
    options = ["--data", pictures, "--epochs", STEPS, "--threads", 1, "--losses", "--device", "auto", "--amp", amp]
    losses, bits = main_job("Python", tmp_path / "Python", environment, ranks, *options)
    assert len(losses) == STEPS and len(bits[0]) > 2 << 20 and bits == [bits[0]] * ranks
    for language in [*["Lua"] * bool(LUA), "C"]:
        assert main_job(language, tmp_path / language, environment, ranks, *options) == (losses, bits[:1] if language == "C" else bits), language


# Trains the network of gpt.py on texts of each rank's own: BACKEND AMP COMPRESSION.
GPT = """
import json, sys
import yoke
sys.path.insert(0, EXAMPLES)
import gpt
backend, amp, compression = (None if word == "-" else word for word in sys.argv[1:])
group = yoke.comm.init(backend, timeout=60.)
yoke.set_device(f"cuda:{group.local_rank}")
yoke.manual_seed(group.rank)
net = gpt.GPT(layers=2, width=16, heads=2, context=8, vocabulary=32, tied=True)
for block in net.blocks: block.checkpoint_("full")
ddp = yoke.DistributedDataParallel(net, group, bucket_mb=0.01, compression=compression)
ddp.context = net.context
step, _ = gpt.make_step(ddp, yoke.tensor([7 * i * i % 32 for i in range(200)]), STEPS, batch=2, lr=0.01, amp=amp or "off")
losses = [step().item() for _ in range(STEPS)]
print(json.dumps(["nccl" in repr(group), losses, [each.detach().cpu().reshape(-1).tolist() for each in net.parameters()]]))
"""


def train_gpt(environment, ranks, *words):
    script = f"EXAMPLES, STEPS = {str(EXAMPLES)!r}, {STEPS}\n{GPT}"
    told = [json.loads(out) for out in yoke_run([sys.executable, "-c", script, *words], environment, ranks)[0]]
    assert [used for used, *_ in told] == [words[0] == "nccl"] * ranks
    assert all(parameters == told[0][2] for *_, parameters in told)
    assert len({str(losses) for _, losses, _ in told}) == ranks  # each rank has its own texts
    return told[0][2]


@pytest.mark.parametrize("ranks, amp, compression", [(2, "-", "-"), *[(4, "-", "-"), (2, "bf16", "-"), (2, "f16", "bf16"), (4, "-", "powersgd:rank=2,start=2")] * SOAKS])
def test_a_gpt_has_the_same_parameters_on_all_ranks(tmp_path, ranks, amp, compression):
    environment = machine(tmp_path, ranks, FAKE_CUDA_SEED="5", FAKE_NCCL_LATE="1")
    found = train_gpt(environment, ranks, "nccl", amp, compression)
    if SOAKS:
        expected = train_gpt(environment, ranks, "cpu", amp, compression)
        for got, right in zip(found, expected, strict=True):
            assert got == pytest.approx(right, rel=0, abs=1e-4 if (amp, compression) == ("-", "-") else 2e-2)
