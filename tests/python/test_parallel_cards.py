"""DistributedDataParallel with device_ids=[d] and output_device=d, PyTorch's words for a rank's own card, in Python and Lua."""
import json
import os
import shutil
import subprocess
import sys
import threading

import pytest

import yoke
from cards_of_ranks import IS_BUILT, machine, together, under_torchrun
from yoke import nn

LUA = shutil.which("lua5.4") or shutil.which("lua")
needs_cards = pytest.mark.skipif(not IS_BUILT, reason="no emulated CUDA module, no fake NVML or no command was built")


@pytest.mark.parametrize("options, error, words", [
    ({"device_ids": [0]}, yoke.ValueError, r"argument 'device_ids' is \[0\], but the module is on cpu; leave out this argument, or move the module to its card first"),
    ({"device_ids": ["cpu"]}, yoke.ValueError, r"'device_ids' is \['cpu'\], but the module is on cpu; leave out this argument"),
    ({"device_ids": [yoke.device("cpu")]}, yoke.ValueError, r"'device_ids' is \[cpu\], but the module is on cpu; leave out this argument"),
    ({"output_device": 0}, yoke.ValueError, "argument 'output_device' is 0, but the module is on cpu; leave out this argument"),
    ({"device_ids": [0, 1]}, yoke.ValueError, r"'device_ids' is \[0, 1\], but a rank uses one card; .*: yoke run -n 2$"),
    ({"device_ids": ("cuda:0", 1, 2, 3)}, yoke.ValueError, r"'device_ids' is \['cuda:0', 1, 2, 3\], .*: yoke run -n 4$"),
    ({"device_ids": 0}, yoke.TypeError, r"'device_ids' is 0; it must be a list of one device, \[0\], or None"),
    ({"device_ids": "cuda:0"}, yoke.TypeError, r"'device_ids' is 'cuda:0'; it must be a list of one device, \['cuda:0'\], or None"),
    ({"group": [0]}, yoke.TypeError, r"argument 'group' is of type list; .*, or None; give a list of devices as device_ids=$")])
def test_of_a_module_on_the_host_no_device_is_taken(options, error, words):
    group, = yoke.comm.init_all(["cpu"], size=1)
    with pytest.raises(error, match=rf"DistributedDataParallel\(\): {words}" if words.startswith("argument") else words):
        yoke.DistributedDataParallel(nn.Linear(1, 1), **{"group": group, **options})
    yoke.DistributedDataParallel(nn.Linear(1, 1), group)  # the group is unchanged


@pytest.mark.parametrize("options", [{"device_ids": None}, {"output_device": None}, {"device_ids": []}, {"device_ids": None, "output_device": None}])
def test_none_is_as_if_it_were_left_out(options):
    group, = yoke.comm.init_all(["cpu"], size=1)
    ddp = yoke.DistributedDataParallel(nn.Linear(1, 1, bias=False), group, **options)
    ddp(yoke.full((1, 1), 3.)).sum().backward()
    assert ddp.module.weight.grad.item() == 3


def test_a_module_without_parameters_is_refused_for_that():
    group, = yoke.comm.init_all(["cpu"], size=1)
    with pytest.raises(yoke.ValueError, match="no parameter"):
        yoke.DistributedDataParallel(nn.ReLU(), group, device_ids=[0])


def test_at_their_deadline_the_others_hear_which_device_a_rank_was_refused():
    groups, told, heard = yoke.comm.init_all(["cpu"], size=2, timeout=1.), [None, None], threading.Event()

    def run(group):
        try:
            yoke.DistributedDataParallel(nn.Linear(1, 1), group, device_ids=[0, 1] if group.rank else None)
        except yoke.Error as error:
            told[group.rank] = str(error)
        if group.rank:
            heard.wait(30)
        else:
            heard.set()
    threads = [threading.Thread(target=run, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "yoke run -n 2" in told[1] and "was refused: " in told[0] and "yoke run -n 2" in told[0], told


# ---- On two emulated cards -------------------------------------------------------------------------------------------

PYTHON = """
import json
import yoke
group = yoke.comm.init()
here = group.local_rank
def net_on(*devices):
    return yoke.nn.Sequential(*[yoke.nn.Linear(2, 2, bias=False).to(each) for each in devices])
def told(*devices, **options):
    try:
        yoke.DistributedDataParallel(net_on(*devices), group, **options)
        return "fine"
    except yoke.Error as error:
        return f"{type(error).__name__} {error}"
"""


def on_cards(script, folder, cards=2, ranks=2):
    """Returns the output of each rank, read as JSON."""
    outs, errors = together([sys.executable, "-c", PYTHON + script], under_torchrun(machine(folder, cards), ranks))
    return [json.loads(out) for out in outs], errors


@needs_cards
def test_the_modules_own_card_is_taken_as_an_index_a_text_or_a_device(tmp_path):
    outs, _ = on_cards("""
card = f"cuda:{here}"
print(json.dumps([told(card, device_ids=[here]), told(card, device_ids=[card]), told(card, device_ids=(yoke.device(card),)),
                  told(card, device_ids=[f"uuid:{yoke.device(card).uuid}"]), told(card, output_device=here), told(card, device_ids=[here], output_device=card)]))
""", tmp_path)
    assert outs == [["fine"] * 6] * 2


@needs_cards
def test_a_device_that_is_not_the_modules_is_refused_with_both(tmp_path):
    (wrong, out, cpu, missing, kind, several), = on_cards("""
print(json.dumps([told("cuda:0", device_ids=[1]), told("cuda:0", device_ids=[0], output_device="cuda:1"), told("cuda:0", device_ids=["cpu"]),
                  told("cuda:0", device_ids=[7]), told("cuda:0", device_ids=[True]), told("cuda:0", "cuda:1", device_ids=[0])]))
""", tmp_path, ranks=1)[0]
    assert wrong == ("ValueError DistributedDataParallel(): argument 'device_ids' is [1], which is cuda:1, but the module is on cuda:0; "
                     "give the module's own card, or move the module first: module.to('cuda:1')")
    assert out.startswith("ValueError DistributedDataParallel(): argument 'output_device' is 'cuda:1', which is cuda:1, but the module is on cuda:0;")
    assert "'device_ids' is ['cpu'], which is cpu, but the module is on cuda:0" in cpu
    assert missing.startswith("DeviceUnavailableError") and "cuda:7" in missing, missing
    assert kind.startswith("TypeError") and "is [True]; it must be a device, an index or a text, such as ['cuda:0']" in kind, kind
    assert several.startswith("ValueError") and "is [0], but the module is on cuda:0 and cuda:1; leave out this argument" in several


TRAINS = """
class Model(yoke.nn.Module):
    def __init__(self):
        self.layer = yoke.nn.Linear(2, 2, bias=False)
    def forward(self, x, more, scale=None):
        y = self.layer(x) + more["both"][0] * scale
        return y, more["name"]
yoke.manual_seed(0)
yoke.set_device(f"cuda:{here}")
model = Model().to(here)
ddp = yoke.DistributedDataParallel(model, group, device_ids=[here], output_device=here)
x = yoke.full((1, 2), here + 1., device="cpu", requires_grad=True)
more = {"both": (yoke.ones((1, 2), device="cpu"), 5), "name": "kept"}
kept = more["both"][0]
y, name = ddp(x, more, scale=yoke.full((), 2., device=f"cuda:{here}"))
y.sum().backward()
print(json.dumps([str(y.device), name, model.layer.weight.grad.tolist(), str(x.grad.device), x.grad.tolist() == model.layer.weight.sum(0, keepdim=True).tolist(),
                  more["both"][0] is kept and str(kept.device)]))
"""


@needs_cards
def test_what_the_module_gets_is_copied_to_its_card_and_gradients_come_back(tmp_path):
    outs, errors = on_cards(TRAINS, tmp_path)
    assert outs == [[f"cuda:{rank}", "kept", [[1.5, 1.5]] * 2, "cpu", True, "cpu"] for rank in range(2)], errors


@needs_cards
def test_without_device_ids_it_is_given_as_it_is(tmp_path):
    (out,), _ = on_cards("""
ddp = yoke.DistributedDataParallel(net_on("cuda:0"), group, output_device=0)
seen = []
ddp.module.forward = lambda x: seen.append(str(x.device))
ddp(yoke.ones((1, 2), device="cpu"))
print(json.dumps(seen))
""", tmp_path, ranks=1)
    assert out == ["cpu"]


LUA_TRAINS = """
local yoke = require "yoke"
local group <close> = assert(yoke.comm.init())
local here = group.local_rank
local other, card = 1 - here, "cuda:" .. here
local function told(device, options)
    options.group = group
    local fine, problem = pcall(yoke.DistributedDataParallel, yoke.nn.Linear(2, 2):to(device), options)
    if fine then problem:close() end
    print(fine and "fine" or problem.code .. " " .. problem.message)
end
told(card, { device_ids = { here }, output_device = card })
told(card, { device_ids = { yoke.device(card) } })
told(card, { output_device = here })
told(card, { device_ids = { other } })
told(card, { device_ids = { here }, output_device = "cuda:" .. other })
local Model = yoke.nn.Module:extend "Model"
function Model:init() self.layer = yoke.nn.Linear(2, 2, { bias = false }) end
function Model:forward(x, more) return self.layer(x) + more.both[1], more.name end
local model = Model():to(card)
local ddp = yoke.DistributedDataParallel(model, { group = group, device_ids = { here } })
local x = yoke.full({ 1, 2 }, here + 1.0, { device = "cpu", requires_grad = true })
local more = { both = { yoke.ones({ 1, 2 }, { device = "cpu" }) }, name = "kept" }
local kept = more.both[1]
local y, name = ddp(x, more)
y:sum():backward()
local grad = model.layer.weight.grad:tolist()
print(tostring(y.device), name, grad[1][1], grad[2][2], tostring(x.grad.device), rawequal(more.both[1], kept), tostring(kept.device))
ddp:close()
"""


@needs_cards
@pytest.mark.skipif(LUA is None, reason="there is no Lua")
def test_lua_has_the_same_words(tmp_path):
    file = tmp_path / "trains.lua"
    file.write_text(LUA_TRAINS, encoding="utf-8")
    outs, errors = together([LUA, file], under_torchrun(machine(tmp_path / "machine", 2), 2))
    for rank, out in enumerate(outs):
        *fine, wrong, output, trained = out.splitlines()
        assert fine == ["fine"] * 3, (out, errors)
        other = 1 - rank
        assert wrong == (f"value DistributedDataParallel: option 'device_ids' is {{{other}}}, which is cuda:{other}, but the module is on cuda:{rank}; "
                         f"give the module's own card, or move the module first: module:to('cuda:{other}')")
        assert f"option 'output_device' is 'cuda:{other}', which is cuda:{other}, but the module is on cuda:{rank}" in output
        assert trained.split() == [f"cuda:{rank}", "kept", "1.5", "1.5", "cpu", "true", "cpu"], trained


@pytest.mark.skipif(LUA is None, reason="there is no Lua")
@pytest.mark.parametrize("option, words", [
    ("device_ids = {0}", "option 'device_ids' is {0}, but the module is on cpu; leave out this argument, or move the module to its card first"),
    ("output_device = 0", "option 'output_device' is 0, but the module is on cpu; leave out this argument"),
    ("device_ids = {0, 1}", "option 'device_ids' is {0, 1}, but a rank uses one card; start a rank for each card: yoke run -n 2"),
    ("device_ids = 0", "option 'device_ids' is 0; it must be a list of one device, {0}, or left out"),
    ("device_ids = {card = 0}", "it must be a list of one device, such as {'cuda:0'}, or left out"),
    ("device_ids = {}", "fine"), ("device_ids = false, output_device = false", "fine")])
def test_lua_takes_no_device_of_a_module_on_the_host(option, words):
    script = f"""
local yoke = require "yoke"
local group <close> = assert(yoke.comm.init {{ backend = "cpu", rank = 0, world_size = 1 }})
local fine, problem = pcall(yoke.DistributedDataParallel, yoke.nn.Linear(1, 1), {{ group = group, {option} }})
print(fine and "fine" or problem.message)
"""
    done = subprocess.run([LUA, "-e", script], env=os.environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and words in done.stdout, done.stdout + done.stderr
