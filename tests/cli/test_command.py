"""The `yoke` command, on this machine and over scenarios of the fake edge."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", ROOT / "build" / "release"))
COMMAND = BUILD / "bin" / "yoke"
LIBRARY = BUILD / "tests" / "fakes" / "edge" / "libnvidia-ml.so.1"
sys.path.insert(0, str(ROOT / "tests" / "fakes" / "edge"))

def was_left_out():
    """Returns whether CMake decided to build without the command; a command that merely failed to build must fail here."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    return "YOKE_CLI:BOOL=OFF" in cache or "CLI11_DIR:PATH=CLI11_DIR-NOTFOUND" in cache \
        or "nlohmann_json_DIR:PATH=nlohmann_json_DIR-NOTFOUND" in cache


pytestmark = pytest.mark.skipif(was_left_out(), reason="built without CLI11 or nlohmann-json")


def yoke(*arguments, variables=None, columns=80):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("YOKE_DEVICE", "YOKE_PLATFORMS", "CUDA_"))}
    environment |= {"COLUMNS": str(columns), **(variables or {})}
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    """Returns scenario(name): variables with which Yoke sees the scenario's machine."""
    if not LIBRARY.exists():
        pytest.skip("built without the fake edge")
    import render
    known = {}

    def variables(name):
        if name not in known:
            folder = tmp_path_factory.mktemp(re.sub(r"\W", "_", name))
            render.render(name, folder)
            lines = (folder / "environment").read_text().splitlines()
            known[name] = dict(line.split("=", 1) for line in lines if line)
        return known[name]
    return variables


@pytest.mark.parametrize("command", [["devices"], ["topology"], ["doctor"], ["select"], ["bench", "device"], ["bench", "collectives"], ["comm", "env"],
                                     ["run"], ["state"], ["hang"], ["version"]])
def test_each_command_explains_itself(command):
    done = yoke(*command, "--help")
    assert done.returncode == 0 and "Usage:" in done.stdout and done.stderr == ""


@pytest.mark.parametrize("arguments, refused", [
    ("devcies", "yoke: there is no command 'yoke devcies'; did you mean 'devices'?\nRun 'yoke --help' for the arguments.\n"),
    ("devicse --json", "yoke: there is no command 'yoke devicse'; did you mean 'devices'?\n"),
    ("comm evn", "yoke: there is no command 'yoke comm evn'; did you mean 'env'?\nRun 'yoke comm --help' "),
    ("bench nosuch", "yoke: there is no command 'yoke bench nosuch'; the commands are device, collectives\n"),
    ("version x", "yoke: The following argument was not expected: x\nRun 'yoke version --help' "),
    ("comm --nosuch", "yoke: The following argument was not expected: --nosuch\n"),
    ("devices --every 1", "yoke: --every requires --watch\n")])
def test_a_wrong_word_is_an_error_that_names_it(arguments, refused):
    done = yoke(*arguments.split())
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith(refused), done


@pytest.mark.parametrize("command", ["bench", "comm"])
def test_a_missing_command_shows_which_there_are(command):
    done = yoke(command)
    assert done.returncode == 2 and done.stdout == "" and "Subcommands:" in done.stderr, done


@pytest.mark.parametrize("arguments", [["devices", "--every", "1"], ["devices", "--watch", "--every", "0"],
                                       ["devices", "--catalog", "--watch"], ["bench"], ["doctor", "--deadline", "-1"],
                                       ["devices", "--watch", "--every", "nan"], ["devices", "--watch", "--every", "inf"],
                                       ["bench", "device", "cpu", "--seconds", "nan"], ["doctor", "--deadline", "nan"],
                                       ["bench", "device", "cpu", "--svg", ""], ["doctor", "--record", ""],
                                       ["doctor", "--verify-off", "--record", "x"], ["doctor", "--verify-off", "--all"],
                                       ["doctor", "--verify-off", "--deadline", "3"], ["devices", "--catalog", "--processes"]])
def test_options_that_cannot_be_are_refused(arguments):
    done = yoke(*arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.strip(), done


def test_the_version_is_that_of_the_library():
    import yoke as package
    done = yoke("version", "--json")
    assert json.loads(done.stdout)["version"] == package.version()
    assert yoke("--version").stdout == f"yoke {package.version()}\n"


def test_a_machine_without_a_gpu_that_serves_says_so(scenario):
    variables = scenario("none")  # a server's management controller draws its screen
    told = yoke("devices", variables=variables).stdout
    assert "unusable" in told and "no backend of this build" in told
    cards = json.loads(yoke("devices", "--json", variables=variables).stdout)["cards"]
    assert [card["usable"] for card in cards] == [False]
    assert yoke("select", "cuda", variables=variables).returncode == 1


def test_eight_cards_fit_eighty_columns(scenario):
    done = yoke("devices", variables=scenario("8xH100-nvlink"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum("H100" in line for line in lines) == 8
    assert max(map(len, lines)) <= 80
    assert "\033" not in done.stdout


def test_a_wide_terminal_shows_more(scenario):
    narrow = yoke("devices", variables=scenario("8xH100-nvlink"))
    wide = yoke("devices", variables=scenario("8xH100-nvlink"), columns=220)
    assert "UUID" not in narrow.stdout and "UUID" in wide.stdout


def test_devices_as_json_has_every_field_of_the_header(scenario):
    cards = json.loads(yoke("devices", "--json", variables=scenario("8xH100-nvlink")).stdout)["cards"]
    header = (ROOT / "capi/include/yoke/inventory.h").read_text()
    struct = re.search(r"typedef struct yoke_card_info \{(.*?)\} yoke_card_info;", header, re.S)[1]
    struct = re.sub(r"/\*.*?\*/", "", struct, flags=re.S)
    fields = {name for line in re.findall(r"\w+_t ([^;]+);|char ([^;]+);|double ([^;]+);", struct)
              for name in re.findall(r"[a-z_][a-z_0-9]*", re.sub(r"\[\d+\]", "", " ".join(line)))}
    assert {"name", "throttle", "enclosure"} < fields
    fields -= {"struct_size", "cc_major", "cc_minor"}
    assert fields <= set(cards[0]), fields - set(cards[0])
    assert len({card["uuid"] for card in cards}) == 8


def test_the_matrix_of_links_fits_the_terminal_and_is_explained_once(scenario):
    for columns in (60, 80, 220):
        told = yoke("topology", variables=scenario("8xH100-nvlink"), columns=columns).stdout
        assert max(map(len, told.splitlines())) <= columns
        assert told.count("PXB") == 1 and told.split("X: itself")[0].count("GPU7") >= 2
        head, row = (" ".join(re.findall(rf"^ *{name} .*$", told, re.M)) for name in ("(?:GPU0  GPU1|mlx5_.|NUMA)", "GPU3"))
        assert re.findall(r"mlx5_\d", told) == [f"mlx5_{i}" for i in range(8)], head
        assert row.count("NV18") == 7 and row.split()[-1] == "0" and row.split().count("PIX") == 1


def test_the_topology_is_square(scenario):
    told = json.loads(yoke("topology", "--json", variables=scenario("8xH100-nvlink")).stdout)
    assert [len(row) for row in told["links"]] == [8] * 8
    assert all(told["links"][i][i]["label"] == "X" for i in range(8))
    assert told["links"][0][1]["label"] == "NV18"
    assert "NV18" in yoke("topology", variables=scenario("8xH100-nvlink")).stdout


def test_select_prints_what_cuda_visible_devices_takes(scenario):
    variables = scenario("8xH100-nvlink")
    done = yoke("select", "auto:n=2,min_free=20GiB,same=nvlink", variables=variables)
    assert done.returncode == 0, done.stderr
    uuids = done.stdout.strip().split(",")
    cards = json.loads(yoke("devices", "--json", variables=variables).stdout)["cards"]
    assert len(uuids) == 2 and set(uuids) < {card["uuid"] for card in cards}


def test_select_says_why_nothing_fits(scenario):
    done = yoke("select", "auto:min_cc=12.0,fallback=error", "--explain", variables=scenario("8xH100-nvlink"))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("rejected") >= 8 and "9.0" in done.stderr


def test_an_explained_failure_says_each_reason_once(scenario):
    done = yoke("select", "auto:name=A100", "--explain", variables=scenario("8xH100-nvlink"))
    assert done.returncode == 1 and done.stderr.count("does not contain 'A100'") == 1, done.stderr
    assert done.stderr.count("rejected") == 9 and done.stderr.splitlines()[-1] == "yoke: select: no device fits"
    plain = yoke("select", "auto:name=A100", variables=scenario("8xH100-nvlink")).stderr
    assert "8 × NVIDIA H100 80GB HBM3 (cuda:0–7): the name does not contain 'A100'" in plain


def test_the_list_has_whole_uuids_in_a_narrow_terminal(scenario):
    told = yoke("devices", "-L", variables=scenario("8xH100-nvlink"), columns=40).stdout.splitlines()
    cards = json.loads(yoke("devices", "--json", variables=scenario("8xH100-nvlink")).stdout)["cards"]
    assert told == [f"#{c['index']}: {c['name']} (UUID: {c['uuid']}, {c['pci']}) cuda:{c['visible']}" for c in cards]
    assert yoke("devices", "--list", variables=scenario("mig-7x")).stdout.count("\n  #") == 7


def test_a_reason_that_cards_share_is_printed_once(scenario):
    told = yoke("devices", variables=scenario("driver-library-mismatch"), columns=400).stdout
    assert "#0–1: " in told and told.count("#0: ") == told.count("#1: ") == 0, told


def test_an_external_gpu_is_marked_in_every_form_and_no_other_card_is(scenario):
    variables = scenario("2xeGPU-TB3")
    for columns in (80, 220):
        told = yoke("devices", variables=variables, columns=columns).stdout
        rows = [line for line in told.splitlines() if re.match(r" *\d+ ", line)]
        assert ["eGPU" in row for row in rows] == [False, True, True], told
        assert max(map(len, told.splitlines())) <= columns
        flat = " ".join(told.split())
        assert "#1: the GPU is external (eGPU) in Razer Core X, behind a cable of 40 Gbit/s" in flat, told
    listed = yoke("devices", "--list", variables=variables).stdout.splitlines()
    assert ["eGPU" in line for line in listed] == [False, True, True]
    cards = json.loads(yoke("devices", "--json", variables=variables).stdout)["cards"]
    assert [card["is_egpu"] for card in cards] == [False, True, True]
    assert "eGPU" not in yoke("devices", variables=scenario("8xH100-nvlink")).stdout


@pytest.mark.parametrize("machine", ["dgx-spark", "jetson-thor", "jetson"])
def test_a_gpu_within_the_processor_is_one_row_with_the_hosts_memory(machine, scenario):
    told = yoke("devices", variables=scenario(machine)).stdout
    cards = json.loads(yoke("devices", "--json", variables=scenario(machine)).stdout)["cards"]
    assert len(cards) == 1 and cards[0]["memory_total"] > 60 * 2**30, cards
    assert "shares the host's memory" in " ".join(told.split()) and "eGPU" not in told, told


def test_a_wrong_spec_names_the_key(scenario):
    done = yoke("select", "auto:min_fre=8GiB", variables=scenario("none"))
    assert done.returncode == 2 and "min_fre" in done.stderr and "min_free" in done.stderr


def test_the_catalog_knows_what_buying_guides_name():
    entries = json.loads(yoke("devices", "--catalog", "--json").stdout)
    names = " ".join(entry["name"] for entry in entries)
    assert len(entries) >= 24
    for model in ("T4", "V100", "A100", "H100", "H200", "B200", "L4", "L40S", "2080 Ti", "3080", "3090", "4090", "5090", "Orin"):
        assert model in names
    h200 = next(entry for entry in entries if entry["name"].startswith("H200"))
    assert h200["memory"] == 143771 << 20
    assert max(map(len, yoke("devices", "--catalog").stdout.splitlines())) <= 80


def test_doctor_is_right_about_a_plain_machine(scenario):
    done = yoke("doctor", "--json", variables=scenario("none"))
    assert done.returncode == 0, done.stdout
    checks = {check["number"]: check for check in json.loads(done.stdout)["checks"]}
    assert len(checks) >= 45 and checks[1]["status"] == "warn"
    named = yoke("doctor", "--json", variables=scenario("none") | {"YOKE_PLATFORMS": "cuda"})
    assert named.returncode == 1
    assert {c["number"]: c for c in json.loads(named.stdout)["checks"]}[1]["status"] == "fail"


def test_doctor_prints_what_readme_shows(tmp_path):
    shown = re.search(r"^\$ yoke doctor\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)[1]
    done = yoke("doctor", "--no-probe", variables={"YOKE_SYSROOT": str(tmp_path), "YOKE_NVML_PATH": str(tmp_path / "none.so")})
    numbers = re.compile(r"\d+ (ok|do not apply)")  # depend on the machine
    assert done.returncode == 0 and numbers.sub(r"N \1", done.stdout) == numbers.sub(r"N \1", shown), done


def test_doctor_says_what_is_expected_and_why_a_check_did_not_run(tmp_path):
    done = yoke("doctor", "--no-probe", "--all", variables={"YOKE_SYSROOT": str(tmp_path), "YOKE_NVML_PATH": str(tmp_path / "none.so")})
    assert "warn  1 expected: An NVIDIA GPU is in the machine [gpu-present]\n        found: no NVIDIA device" in done.stdout
    assert "skip  3 The kernel module is loaded [module-loaded]\n        not checked: there is no NVIDIA GPU" in done.stdout


def test_what_is_disabled_is_not_mapped_and_what_is_enabled_is(scenario):
    module = BUILD / "tests" / "emu" / "lib"
    if not (module / "libyoke_cuda.so").exists():
        pytest.skip("built without the emulated CUDA module")
    driver = BUILD / "tests" / "fakes" / "cuda" / "driver"
    variables = scenario("8xH100-nvlink") | {"YOKE_CUDA_LIB_PATH": str(driver), "LD_LIBRARY_PATH": f"{module}:{driver}"}
    done = yoke("doctor", "--verify-off", "--json", variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    before, off, on = json.loads(done.stdout)["states"]
    assert before["cuda_libraries"] == off["cuda_libraries"] == []
    assert {pathlib.Path(path).name for path in on["cuda_libraries"]} >= {"libyoke_cuda.so", "libcuda.so.1"}
    assert off["threads"] >= 1 and off["resident"] > 0


def test_a_machine_whose_cpu_is_not_to_be_used_is_shown_all_the_same(scenario):
    done = yoke("devices", variables=scenario("8xH100-nvlink") | {"YOKE_PLATFORMS": "cuda"})
    assert done.returncode == 0 and "H100" in done.stdout, done.stderr


def test_a_kind_that_is_demanded_and_fails_does_not_end_the_table_early(scenario):
    done = yoke("devices", variables=scenario("8xH100-nvlink") | {"YOKE_PLATFORMS": "cuda,cpu", "LD_LIBRARY_PATH": ""})
    assert done.returncode == 0 and "driver 580.82.07" in done.stdout, done.stderr
    assert re.search(r"^cpu: \S", done.stdout, re.M)


def test_the_version_says_why_a_kind_is_not_used(scenario):
    variables = scenario("8xH100-nvlink") | {"YOKE_PLATFORMS": "cpu"}
    told = yoke("version", variables=variables).stdout
    assert "cuda is not used: " in told and "YOKE_PLATFORMS" in told and "cpu is not used" not in told
    reasons = json.loads(yoke("version", "--json", variables=variables).stdout)["why_unavailable"]
    assert "YOKE_PLATFORMS" in reasons["cuda"] and reasons["cpu"] is None


FULL = [["devices"], ["devices", "--json"], ["devices", "--catalog"], ["topology"], ["version"], ["--help"],
        ["select", "cpu"], ["doctor", "--json", "--no-probe"], ["devices", "--watch"]]


@pytest.mark.parametrize("arguments", FULL, ids=" ".join)
@pytest.mark.parametrize("closed", [False, True], ids=["full", "closed"])
def test_output_that_is_lost_is_an_error(arguments, closed, scenario):
    end = ">&-" if closed else ">/dev/full"
    environment = os.environ | scenario("none")
    done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {end}', COMMAND, *arguments], capture_output=True, text=True,
                          env=environment, timeout=60)
    assert done.returncode == 2 and "yoke: stdout could not be written" in done.stderr, done


def test_a_recording_is_examined_once_and_printed(scenario, tmp_path):
    variables = scenario("A100+T4")

    def examined(*arguments):
        calls = tmp_path / f"calls-{len(arguments)}"
        done = yoke("doctor", "--json", "--deadline", "3", *arguments, variables=variables | {"FAKE_NVML_CALLS": str(calls)})
        return done, len(calls.read_text().splitlines())
    plain, once = examined()
    done, calls = examined("--record", tmp_path / "bundle")
    assert calls == once > 0
    assert done.returncode == plain.returncode and "recorded in" in done.stderr
    told, kept = json.loads(done.stdout), json.loads((tmp_path / "bundle" / "report.json").read_text())
    assert told["exit_code"] == kept["exit_code"] and set(told["checks"][0]) == set(json.loads(plain.stdout)["checks"][0])
    assert [c["evidence"] for c in told["checks"]] == [c["evidence"] for c in kept["checks"]]
    assert [c["status"] for c in told["checks"]] == [c["status"] for c in kept["checks"]]
    again = yoke("doctor", "--record", tmp_path / "bundle", variables=variables)
    assert again.returncode == 2 and "not empty" in again.stderr


def test_a_root_that_is_not_there_is_no_machine(tmp_path):
    done = yoke("doctor", "--no-probe", variables={"YOKE_SYSROOT": str(tmp_path / "nowhere")})
    assert done.returncode == 2 and "YOKE_SYSROOT" in done.stderr and "nowhere" in done.stderr and done.stdout == ""


def test_what_cannot_be_looked_at_is_not_said_to_be_off():
    hidden = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
    if subprocess.run([*hidden, "true"], capture_output=True).returncode != 0:
        pytest.skip("no namespaces may be made here")
    done = subprocess.run([*hidden, COMMAND, "doctor", "--verify-off"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "/proc/self/maps" in done.stderr and done.stdout == "", done


def test_a_management_library_that_is_a_fifo_is_not_opened(scenario, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    done = yoke("devices", variables=scenario("A100+T4") | {"YOKE_NVML_PATH": str(tmp_path / "fifo")})
    assert done.returncode == 0 and "not a regular file" in " ".join(done.stdout.split()), done


def test_bench_measures_the_cpu_and_draws_it(tmp_path):
    picture = tmp_path / "cpu.svg"
    done = yoke("bench", "device", "cpu", "--seconds", "0.01", "--json", "--svg", picture)
    assert done.returncode == 0, done.stderr
    figures = {figure["name"]: figure for figure in json.loads(done.stdout)["figures"]}
    assert figures["matmul float32"]["value"] > 1e9 and figures["copy (read and write)"]["value"] > 1e8
    import xml.etree.ElementTree
    assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")
    refused = yoke("bench", "device", "cpu", "--seconds", "0.01", "--svg", tmp_path / "none" / "x.svg")
    assert refused.returncode == 2 and "--svg" in refused.stderr


def test_the_completion_knows_every_option():
    script = (ROOT / "bindings/cli/yoke.bash").read_text()
    manual = (ROOT / "bindings/cli/yoke.1").read_text().replace("\\-", "-")
    for command in ("devices", "topology", "doctor", "select", "bench collectives", "comm env", "run", "state", "version"):
        options = set(re.findall(r"(--[a-z_-]+)", yoke(*command.split(), "--help").stdout)) - {"--help", "--help-all"}
        for option in options:
            assert option in script, (command, option)
            assert option in manual, (command, option)


def completed(line, folder):
    """Returns the words that an interactive bash makes of a line and a tabulator."""
    keys = f"source {ROOT}/bindings/cli/yoke.bash\nyoke() {{ printf 'ran:%s.\\n' \"$@\"; }}\n{line}\t\nexit\n"
    # A line editor wants a terminal; script(1) makes one.
    shell = ["script", "-qec", "bash --noprofile --norc -i", "/dev/null"]
    environment = os.environ | {"TERM": "dumb", "INPUTRC": "/dev/null", "PS1": "", "HISTFILE": ""}
    done = subprocess.run(shell, input=keys, capture_output=True, text=True, env=environment, cwd=folder, timeout=60)
    return re.findall(r"^ran:(.*)\.\r?$", done.stdout, re.M)


@pytest.mark.skipif(not shutil.which("script") or not shutil.which("bash"), reason="script or bash is missing")
@pytest.mark.parametrize("line, words", [
    ("yoke select auto:min_f", ["select", "auto:min_free="]), ("yoke select auto:same=nv", ["select", "auto:same=nvlink"]),
    ("yoke select auto:n=2,hom", ["select", "auto:n=2,homogeneous"]), ("yoke sel", ["select"]),
    ("yoke doctor --record a", ["doctor", "--record", "a folder/"]),
    ("yoke bench device --svg on", ["bench", "device", "--svg", "one file.svg"]),
    ("yoke bench collectives --warm", ["bench", "collectives", "--warmup_iters"]), ("yoke comm e", ["comm", "env"]),
    ("yoke state one", ["state", "one file.svg"]), ("yoke state x --ver", ["state", "x", "--verify"]),
    ("yoke run --rest", ["run", "--restarts"]), ("yoke run -n 2 -- mapfi", ["run", "-n", "2", "--", "mapfile"])])
def test_the_completion_completes(line, words, tmp_path):
    (tmp_path / "a folder").mkdir()
    (tmp_path / "one file.svg").write_text("")
    assert completed(line, tmp_path) == words
