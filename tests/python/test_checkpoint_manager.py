"""CheckpointManager: kept and loaded checkpoints, effects and refusals of `into`, and errors about damage."""

import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import yoke
from yoke import nn, optim


def a_net(width=3):
    return nn.Sequential(nn.Linear(4, width), nn.Linear(width, 2))


class Training:
    """A net, and all other objects of a training."""

    def __init__(self, width=3, kind=optim.AdamW):
        self.net = a_net(width)
        self.optimizer = kind(self.net.parameters(), lr=0.1)
        self.schedule = optim.schedule.cosine(self.optimizer, total_steps=50)
        self.scaler = yoke.GradScaler(init_scale=64.0, growth_interval=2)
        self.ema = optim.EMA(self.net.parameters(), decay=0.9)
        self.stream = yoke.Generator(seed=3)
        self.mean = yoke.zeros(2)

    def parts(self):
        return {"net": self.net, "optimizer": self.optimizer, "schedule": self.schedule, "scaler": self.scaler,
                "ema": self.ema, "mean": self.mean}

    def state(self):
        return {**self.parts(), "stream": self.stream.get_state()}

    def into(self):
        return {**self.parts(), "stream": self.stream}

    def step(self):
        with self.stream:
            loss = self.net(yoke.randn((2, 4))).sum()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.ema.update()
        self.optimizer.zero_grad()
        with yoke.no_grad():
            self.mean += loss.item()

    def values(self):
        return plain(self.state())


def plain(value):
    """Bits, to be compared."""
    if isinstance(value, yoke.Tensor):
        return value.tolist()
    if isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: plain(each) for key, each in items}
    return plain(value.state_dict()) if hasattr(value, "state_dict") else value


def test_a_training_goes_on_from_the_newest(tmp_path):
    manager, run = yoke.CheckpointManager(tmp_path / "a" / "run", keep=2), Training()
    assert manager.latest() is None and manager.steps() == []
    for step in range(4):
        run.step()
        work = manager.save(step, {**run.state(), "step": step, "epoch": (1, 2.5, None)}, metadata={"who": "me"})
        work.wait()
        assert work.done() and work.progress()[0] == work.progress()[1] > 0
    assert manager.steps() == [2, 3] and manager.latest() == 3
    at, later = run.values(), []
    for _ in range(3):
        run.step()
        later.append(run.values())
    other = Training()
    state = yoke.CheckpointManager(tmp_path / "a" / "run").load(into=other.into())
    assert state["step"] == 3 and state["epoch"] == (1, 2.5, None)
    assert other.values() == at == {name: plain(state)[name] for name in at}
    for expected in later:
        other.step()
        assert other.values() == expected
    path = tmp_path / "a" / "run" / "step-3" / "state.safetensors"
    assert yoke.load_info(path)["metadata"] == {"who": "me"}
    assert yoke.load(path)["step"] == 3


def test_a_run_may_go_back_and_save_anew(tmp_path):
    manager = yoke.CheckpointManager(tmp_path, keep=2)
    for step, value in ((10, 1), (20, 2), (5, 3), (20, 4)):
        manager.save(step, {"value": value}, blocking=True)
    assert manager.steps() == [5, 20]
    assert manager.load() == {"value": 4} and manager.load(step=5) == {"value": 3}
    assert sorted(os.listdir(tmp_path)) == [".lock", "step-20", "step-5"]


def refused(call, *words, error=yoke.ValueError):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_nothing_changes_unless_all_of_it_fits(tmp_path):
    manager, run = yoke.CheckpointManager(tmp_path), Training()
    run.step()
    manager.save(1, run.state(), blocking=True)
    other = Training(width=5, kind=optim.SGD)
    other.mean = yoke.zeros(2, dtype=yoke.float64)
    before = other.values()
    refused(lambda: manager.load(into={**other.into(), "more": yoke.ones(1)}), "no tensor was changed",
            "'net/0.weight' is a float32 tensor of shape [3, 4] in the state, but goes into a float32 tensor of shape [5, 4]",
            "'net/0.bias'", "'net/1.weight'", "goes into a float64 tensor of shape [2]", "'more' is missing",
            "'optimizer': load_state_dict: group 0 of the state has no option 'momentum'", "'ema': ")
    assert other.values() == before
    bare = nn.Sequential(nn.Linear(4, 3, bias=False), nn.Linear(3, 2), nn.Linear(2, 2))
    refused(lambda: manager.load(into={"net": bare}), "'net/0.bias' is in the state, but has no target", "'net/2.weight' is missing")
    refused(lambda: manager.load(into={"mean": nn.Linear(1, 1)}), "'mean' is a float32 tensor of shape [2] in the state")


@pytest.mark.parametrize("broken", ["expanded", "closed"])
def test_nothing_changes_where_a_tensor_cannot_be_written(broken, tmp_path):
    state = {"first": yoke.ones(2), "net": nn.Linear(2, 2), "optimizer": None, "last": yoke.ones((3, 4))}
    state["optimizer"] = optim.SGD(state["net"].parameters(), lr=0.1)
    manager = yoke.CheckpointManager(tmp_path)
    manager.save(1, state, blocking=True)
    other = {"first": yoke.zeros(2), "net": nn.Linear(2, 2), "last": yoke.zeros((3, 4))}
    other["optimizer"] = optim.SGD(other["net"].parameters(), lr=0.5)
    before = [yoke.tensor(other["first"].tolist()), other["net"].weight.clone()]
    if broken == "expanded":
        other["last"] = yoke.zeros((1, 4)).expand((3, 4))
        refused(lambda: manager.load(into=other), "no tensor was changed", "'last' goes into an expanded tensor", "3 elements of axis 0")
    else:
        other["last"].close()
        refused(lambda: manager.load(into=other), "closed", error=yoke.ClosedError)
    assert other["first"].tolist() == before[0].tolist() and other["net"].weight.tolist() == before[1].tolist()
    assert other["optimizer"].param_groups[0]["lr"] == 0.5


def test_what_fails_amid_the_handing_over_is_put_back(tmp_path):
    class Reader:
        place = yoke.zeros(1)

        def state_dict(self):
            return {"place": self.place}

        def load_state_dict(self, state):
            self.place.copy_(state["place"])
            if self.place.item() == 7:
                raise RuntimeError("the file that it read from is gone")

    manager, run, reader = yoke.CheckpointManager(tmp_path), Training(), Reader()
    run.step()
    reader.place.fill_(7)
    manager.save(1, {**run.state(), "reader": reader}, blocking=True)
    reader.place.fill_(5)
    for _ in range(2):
        run.step()
    before = run.values()
    refused(lambda: manager.load(into={**run.into(), "reader": reader}), "is gone", error=RuntimeError)
    assert run.values() == before and reader.place.item() == 5
    reader.load_state_dict = lambda state: reader.broken  # also when the old state is put back
    refused(lambda: manager.load(into={**run.into(), "reader": reader}), "broken", error=AttributeError)
    assert run.values() == before
    after = Training()
    manager.load(into=after.into())
    assert after.values() != before


@pytest.mark.parametrize("into, words", [
    (3, ["'into' is 3"]), ({"net": 3}, ["into['net'] is 3"]), ({"net": {}}, ["into['net'] is of type dict"]),
    ([], ["'into' is of type list"]),
])
def test_into_takes_objects_by_their_names(tmp_path, into, words):
    manager = yoke.CheckpointManager(tmp_path)
    manager.save(1, {"net": a_net()}, blocking=True)
    refused(lambda: manager.load(into=into), "load()", *words, error=yoke.TypeError)


def test_arguments_are_told_by_name(tmp_path):
    manager = yoke.CheckpointManager(tmp_path)
    refused(lambda: yoke.CheckpointManager(tmp_path, keep=0), "'keep' is 0")
    refused(lambda: yoke.CheckpointManager(tmp_path, keep="x"), "'keep'", error=yoke.TypeError)
    refused(lambda: yoke.CheckpointManager(3), "int", error=TypeError)
    refused(lambda: yoke.CheckpointManager("a\0b"), r"\x00")
    refused(lambda: yoke.CheckpointManager(tmp_path, keeep=3), "keep", error=yoke.TypeError)
    refused(lambda: manager.save(-1, {}), "'step' is -1")
    refused(lambda: manager.save("x", {}), "'step'", error=yoke.TypeError)
    refused(lambda: manager.load(step=-1), "'step' is -1")
    refused(lambda: manager.save(1, {"x": {1, 2}}), "state['x'] is a set", error=yoke.TypeError)
    refused(lambda: manager.save(1, {}, metadata={"yoke.x": "1"}), "yoke.x")
    for truth in (True, np.True_):
        refused(lambda: yoke.CheckpointManager(tmp_path, keep=truth), "'keep' must be an integer, not", "bool", error=yoke.TypeError)
        refused(lambda: manager.save(truth, {}), "'step' must be an integer, not", "bool", error=yoke.TypeError)
        refused(lambda: manager.load(truth), "'step' must be an integer, not", "bool", error=yoke.TypeError)
    refused(lambda: manager.load(), "no step in", error=yoke.CheckpointError)
    assert os.listdir(tmp_path) == []
    manager.save(np.int64(2), {}, blocking=True)
    assert manager.latest() == 2
    manager.save(1, [1, 2], blocking=True)
    assert manager.load() == [1, 2]
    refused(lambda: manager.load(into={"x": yoke.ones(1)}), "'into' is given", "of type list")


def test_what_is_not_there_is_told_from_what_is_damaged(tmp_path):
    def told(step=None):
        with pytest.raises(yoke.CheckpointError) as caught:
            yoke.CheckpointManager(tmp_path / "run").load(step)
        return caught.value.native_code

    assert told() == told(3) == errno.ENOENT
    yoke.CheckpointManager(tmp_path / "run").save(3, {}, blocking=True)
    os.remove(tmp_path / "run" / "step-3" / "state.safetensors")
    assert told() == told(3) == 0 and told(4) == errno.ENOENT


def test_its_folder_is_no_state_and_says_who_loads_it(tmp_path):
    manager = yoke.CheckpointManager(tmp_path)
    for step in range(3):
        manager.save(step, {"step": step}, blocking=True)
    for call in (yoke.load, yoke.load_info):
        refused(lambda: call(tmp_path), f"CheckpointManager('{tmp_path}').load()", "'step-0', 'step-1', 'step-2'",
                error=yoke.CheckpointError)
        refused(lambda: call(tmp_path / "step-1" / "MANIFEST.json"), "name its folder", error=yoke.CheckpointError)
    assert yoke.load(tmp_path / "step-1") == {"step": 1}


def flip_a_bit(step):
    path = step / "state.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def name_a_file_elsewhere(step):
    path = step / "MANIFEST.json"
    path.write_text(path.read_text().replace("state.safetensors", "../step-1/state.safetensors"))


def link_a_file(step):
    shutil.copy(step / "state.safetensors", step.parent / "aside")
    (step / "state.safetensors").unlink()
    (step / "state.safetensors").symlink_to("../aside")


@pytest.mark.parametrize("damage, word", [
    (flip_a_bit, "but its manifest says"), (name_a_file_elsewhere, "the manifest says hash"), (link_a_file, "is a link"),
    (lambda step: (step / "state.safetensors").unlink(), "state.safetensors is missing"),
    (lambda step: (step / "MANIFEST.json").unlink(), "MANIFEST.json is missing"),
    (lambda step: os.truncate(step / "state.safetensors", 99), "has 99 bytes"),
    (lambda step: (step / "MANIFEST.json").write_bytes(b"\0\xff"), "MANIFEST.json"),
])
def test_damaged_steps_are_passed_over_with_one_warning(tmp_path, damage, word):
    yoke.CheckpointManager(tmp_path).save(1, {"value": 1}, blocking=True)
    manager = yoke.CheckpointManager(tmp_path)
    manager.save(2, {"value": 2, "x": yoke.ones(9)}, blocking=True)
    damage(tmp_path / "step-2")
    program = f"import yoke; print(yoke.CheckpointManager({str(tmp_path)!r}).load())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "{'value': 1}\n", done.stderr
    assert done.stderr.count("Warning: ") == 1 and word in done.stderr and "step-1" in done.stderr
    refused(lambda: manager.load(step=2), "step 2 is not complete", word, error=yoke.CheckpointError)
    assert manager.load(step=1) == {"value": 1}
    if word == "MANIFEST.json is missing":  # another program may own this step
        refused(lambda: manager.save(2, {"value": 3}, blocking=True), "no CheckpointManager wrote", error=yoke.StateError)
        return
    manager.save(2, {"value": 3}, blocking=True)
    assert manager.load() == {"value": 3}


def test_a_manifest_says_what_any_tool_can_check(tmp_path):
    manager = yoke.CheckpointManager(tmp_path)
    manager.save(7, {"value": 1}, blocking=True)
    manifest = json.loads((tmp_path / "step-7" / "MANIFEST.json").read_text())
    assert (manifest["format"], manifest["step"], manifest["commit"]) == (1, 7, 1)
    (entry,) = manifest["files"]
    assert entry["name"] == "state.safetensors" and len(entry["xxh3_128"]) == 32
    assert entry["bytes"] == (tmp_path / "step-7" / "state.safetensors").stat().st_size


def test_one_process_writes_and_another_is_told_which(tmp_path):
    yoke.CheckpointManager(tmp_path).save(1, {"value": 1}, blocking=True)
    manager = yoke.CheckpointManager(tmp_path)
    manager.save(2, {"value": 2}, blocking=True)
    program = f"""
import yoke
manager = yoke.CheckpointManager({str(tmp_path)!r})
assert manager.load() == {{"value": 2}}
try:
    manager.save(3, {{}})
except yoke.StateError as error:
    assert "process {os.getpid()} already writes to" in str(error), error
    print("told")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "told\n", done.stderr
    del manager
    manager = yoke.CheckpointManager(tmp_path)
    manager.save(3, {}, blocking=True)
    assert manager.steps() == [1, 2, 3]


def test_a_state_comes_to_a_device(tmp_path):
    device = os.environ.get("YOKE_TEST_DEVICE", "cpu")
    manager, run = yoke.CheckpointManager(tmp_path), Training()
    run.step()
    manager.save(1, run.state(), blocking=True)
    state = manager.load(device=device)
    assert state["net"]["0.weight"].device.kind == device
    assert plain(state) == run.values()


def test_the_folder_is_the_same_after_a_change_of_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    manager = yoke.CheckpointManager(pathlib.Path("run"))
    manager.save(1, {"value": 1}, blocking=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    manager.save(2, {"value": 2}, blocking=True)
    assert manager.steps() == [1, 2] and os.listdir(tmp_path / "elsewhere") == []


def as_nobody(program, folder):
    """Returns the output of a program that runs as another user, with access only to public files."""
    program = "import os\nos.setgid(65534)\nos.setuid(65534)\n" + program
    done = subprocess.run([sys.executable, "-c", "import yoke\n" + program, folder], capture_output=True, text=True, timeout=120)
    assert "skips damaged steps" not in done.stderr, done.stderr
    return done.stdout.split() or done.stderr


ASK = """
import sys
manager = yoke.CheckpointManager(sys.argv[1])
for ask in (manager.load, lambda: manager.load(verify=False), manager.latest, manager.steps, lambda: manager.load(1)["value"]):
    try:
        print(ask())
    except yoke.IOError as error:
        print(error.errno)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="this user cannot become another user")
@pytest.mark.parametrize("part, told", [
    ("MANIFEST.json", [13, 13, 13, 13, 1]),     # this step may be the newest
    ("state.safetensors", [13, 13, 2, "[1,", "2]", 1]),  # names and sizes are readable; a load fails
    (".", [13, 13, 13, 13, 1]),
])
def test_a_step_that_may_not_be_read_is_no_damaged_one(folder_for_users, part, told):
    for step in (1, 2):
        yoke.CheckpointManager(folder_for_users).save(step, {"value": step}, blocking=True)
    os.chmod(folder_for_users / "step-2" / part, 0o700 if part == "." else 0o600)
    assert as_nobody(ASK, folder_for_users) == [str(word) for word in told]
    assert yoke.CheckpointManager(folder_for_users).load() == {"value": 2}


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer takes all of the address space")
def test_a_step_for_which_there_is_no_address_space_is_no_damaged_one(tmp_path):
    manager = yoke.CheckpointManager(tmp_path)
    manager.save(1, {"k": 1}, blocking=True)
    manager.save(2, {"w": yoke.ones((50_000_000,), dtype="uint8"), "k": 2}, blocking=True)
    program = f"""
import resource
import yoke
manager = yoke.CheckpointManager({str(tmp_path)!r})
assert manager.load()["k"] == 2
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000, resource.RLIM_INFINITY))
for options in ({{}}, {{"verify": False}}, {{"step": 2}}):
    try:
        manager.load(**options)
    except yoke.IOError as error:
        print(error.errno, "step-2/state.safetensors" in str(error), manager.latest())
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert manager.load()["k"] == 2
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "12 True 2\n" * 3 and not done.stderr, done.stdout + done.stderr
