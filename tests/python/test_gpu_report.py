"""The report of `./dev gpu` from given figures, and its reading of a tool's output."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def report():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from bench import gpu_report

    yield gpu_report
    sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def jobs():
    sys.path.insert(0, str(ROOT / "tests" / "gpu"))
    import jobs

    yield jobs
    sys.path.remove(str(ROOT / "tests" / "gpu"))


@pytest.fixture(scope="module")
def predictions(report):
    from bench import gpu_predictions

    return gpu_predictions


@pytest.fixture(scope="module")
def compare(jobs):
    import compare

    return compare


@pytest.fixture
def data(report):
    return {
        "head": {"device": "NVIDIA H200", "driver": "580.0"},
        "parts": [{"name": "build", "status": "passed", "seconds": 90.4, "note": ""},
                  {"name": "contract suite", "status": "skipped", "seconds": 0.0, "note": "there is no GoogleTest"}],
        "results": [report.result("Copies", "add f32", [0.91, 0.93, 0.92, 0.95], target=0.9, note="4.0 TB/s"),
                    report.result("Copies", "softmax f32", [0.5, 0.7, 0.6], target=0.85),
                    report.result("Calls", "add | Python", [2.5e-6, 2e-6], unit="s", target=1e-6, at_most=True),
                    report.result("Calls", "empty kernel", [1.8e-6], unit="s")],
        "missing": [{"name": "gemm f16", "reason": "no kernel\nfor it"}],
    }


@pytest.mark.parametrize("name, slug", [
    ("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA GeForce RTX 4090", "rtx-4090"),
    ("NVIDIA A100-SXM4-40GB", "a100"), ("Tesla T4", "t4"), ("NVIDIA", "gpu")])
def test_a_page_is_named_after_the_model(report, name, slug):
    assert report.slug(name) == slug


@pytest.mark.parametrize("value, unit, text", [
    (0.0123, "s", "12.3 ms"), (1.25e-6, "s", "1.25 µs"), (4e-7, "s", "0.4 µs"), (-2e-6, "s", "-2 µs"), (2.0, "s", "2 s"),
    (3 * 2**30, "bytes", "3,072 MiB"), (0.9123, "", "0.912"), (1234567.0, "tokens/s", "1,234,567 tokens/s")])
def test_values_are_written_as_people_read_them(report, value, unit, text):
    assert report.number(value, unit) == text


def test_a_figure_is_the_median_of_its_rounds_beside_its_target(report):
    one = report.result("g", "n", [5.0, 1.0, 3.0, 2.0, 4.0], target=3.0)
    assert (one["value"], one["spread"], one["met"]) == (3.0, [2.0, 4.0], True)
    assert report.result("g", "n", [3.1], target=3.0, at_most=True)["met"] is False
    assert "met" not in report.result("g", "n", [3.1])


def test_the_page_has_every_part_figure_and_gap(report, data):
    page = report.markdown(data)
    assert page.startswith("# Results on NVIDIA H200\n")
    assert "Targets: 1 met, 2 missed; 1 cases have no figure." in page
    assert "| build | passed | 90 |  |" in page
    assert "| contract suite | skipped | 0 | there is no GoogleTest |" in page
    assert "| add f32 | 0.925 | 0.920 to 0.930 | ≥ 0.9 | met | 4.0 TB/s |" in page
    assert "| softmax f32 | 0.600 | 0.500 to 0.700 | ≥ 0.85 | MISSED |  |" in page
    assert "| add \\| Python | 2.25 µs | 2 µs to 2.5 µs | ≤ 1 µs | MISSED |  |" in page
    assert "| gemm f16 | no kernel for it |" in page
    assert page.index("## Copies") < page.index("## Calls") < page.index("## Not measured")


def test_what_is_predicted_stands_beside_what_was_measured(report, data):
    data["results"][0]["predicted"] = 0.99
    page = report.markdown(data)
    assert "| Predicted | Median |" in page and "| add f32 | 0.990 | 0.925 | 0.920 to 0.930 | ≥ 0.9 | met | 4.0 TB/s |" in page
    assert "| softmax f32 |  | 0.600 |" in page and page.count("Predicted from machine code before anything ran") == 1
    assert report.line(data["results"][0]).endswith("met  predicted 0.990")


def test_predictions_are_those_of_the_card_that_the_driver_names(predictions):
    for driver, model in (("NVIDIA H200", "H200 SXM"), ("NVIDIA H200 NVL", "H200 NVL"), ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
                          ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("Tesla T4", "T4"), ("Tesla T40", "")):
        assert predictions.model_of(driver) == model
    page = "| Case | H200 SXM | T4 |\n|---|---|---|\n| add f32 | **0.70** | 1.00 |\n| sum | — | 0.5 |\n\n| Case | Registers |\n|---|---|\n| add f32 | 5 |\n"
    assert predictions.shares("H200 SXM", page) == {"add f32": 0.70}
    assert predictions.shares("B200 SXM", page) == {}


def test_the_committed_predictions_are_of_the_cases_that_are_measured(predictions):
    from bench import gpu_cases

    found = set(predictions.of_card("NVIDIA H200"))
    assert found >= {"add f32", "gelu bf16", "softmax f32", "layer_norm bf16 backward", "adamw f32"}
    assert {case for case in found if not case.startswith("attention ")} <= {case for case, _, _ in gpu_cases.MEMORY}


def test_the_benchmark_puts_predictions_beside_figures_and_saves_them_whole(predictions, tmp_path):
    pytest.importorskip("yoke")
    import gpu

    options = argparse.Namespace(small=False, seconds=10.0, card="NVIDIA H200", device="cuda", json=tmp_path / "bench.json")
    bench = gpu.Bench(options)
    for bench.case in ("add f32", "something else"):
        bench.add("g", bench.case, [0.9])
    first, second = json.loads(options.json.read_text())["results"]
    assert first["predicted"] == predictions.of_card("NVIDIA H200")["add f32"] and "predicted" not in second
    assert gpu.Bench(argparse.Namespace(**{**vars(options), "small": True})).predicted == {}


def test_a_disk_that_is_full_is_told_once_and_ends_no_run(jobs, report, tmp_path, capsys):
    import record

    (tmp_path / "file").write_text("")
    kept = record.Record("x", [tmp_path], tmp_path / "file", {"device": "x"}, {"command": "c", "sources": "s"}, report.markdown)
    for name in ("one", "two"):
        kept.part(name, "passed", 1.0, "")
    assert capsys.readouterr().out.count("cannot write") == 1 and kept.complained
    assert [one["name"] for one in json.loads((tmp_path / "RESULTS-x.json").read_text())["parts"]] == ["one", "two"]


def test_a_page_of_several_calls_names_them(report, data):
    data["calls"] = [{"when": f"2026-11-23T0{i}:00:00.000+00:00", "command": f"./dev gpu --only {only}", "sources": "ab12"}
                     for i, only in enumerate(("build", "tests"))]
    assert "| ./dev gpu --only tests | 2026-11-23T01:00:00 | ab12 |" in report.markdown(data)


def test_the_summary_names_what_did_not_pass(report, data):
    text = report.summary(data)
    assert "build" not in text and "contract suite" in text
    assert "softmax f32" in text and "add f32" not in text
    assert "not measured: gemm f16: no kernel for it" in text
    assert text.endswith("targets: 1 met, 2 missed, 1 without a figure")


def test_a_run_is_well_unless_a_part_failed(report, data):
    assert report.ended_well(data), "a missed target fails nothing"
    data["parts"].append({"name": "ops", "status": "out of time", "seconds": 1.0, "note": ""})
    assert not report.ended_well(data)
    assert not report.ended_well({**data, "parts": []})


def test_parts_say_what_their_tools_counted(jobs):
    import notes

    assert notes.left_out("-- Found x\n-- building without YOKE_ZLIB: y\n") == "building without YOKE_ZLIB: y"
    output = "..F [100%]\nFAILED a/test_x.py::test_y[1] - AssertionError\n1 failed, 2 passed in 0.10s\n"
    assert notes.pytest_note(output) == "1 failed, 2 passed in 0.10s; failed: test_y[1]"
    assert notes.pytest_note("..F.  [ 10%]\n....E") == "until then 7 passed, 2 failed"
    assert notes.gtest_note("[==========] 3 tests ran\n[  PASSED  ] 3 tests.\n") == "[ PASSED ] 3 tests."
    assert notes.learned("loss: 2.3000 to 0.4 in 9 steps\n") == ""
    assert notes.learned("loss: 2.3000 to nan in 9 steps\n") and notes.learned("")
    assert notes.sanitizer_note("x\n========= ERROR SUMMARY: 0 errors\n") == "ERROR SUMMARY: 0 errors"
    assert notes.sanitizer_note("ran add\nran gelu\n") == "until then 2 ops"
    assert notes.left_unprofiled("x\nnothing is profiled: ERR_NVGPUCTRPERM\n") == "ERR_NVGPUCTRPERM" and notes.left_unprofiled("700 launches") == ""


def test_without_pytorch_only_what_needs_it_is_skipped(jobs, monkeypatch, tmp_path):
    import figures

    setting = jobs.Setting(tmp_path, tmp_path, "python3", {"PATH": ""})
    for found, lacking in ((object(), []), (None, ["bench attention", "bench images", "bench steps", "bench main"])):
        monkeypatch.setattr(jobs.importlib.util, "find_spec", lambda name, found=found: found)
        without = {job.name: job.lacking for job in figures.measurements(setting) if job.lacking and job.group != "profile"}
        assert list(without) == lacking and set(without.values()) <= {"python3 has no torch: python3 -m pip install torch"}
        assert bool(figures.prepare_job(setting).lacking) == bool(lacking)


def test_a_made_set_of_pictures_reads_as_one(jobs, tmp_path):
    yoke = pytest.importorskip("yoke")
    folder = jobs.make_pictures(tmp_path)
    images = yoke.data.read_idx(f"{folder}/t10k-images-idx3-ubyte.gz")
    labels = yoke.data.read_idx(f"{folder}/t10k-labels-idx1-ubyte.gz")
    assert (tuple(images.shape), tuple(labels.shape)) == ((1000, 28, 28), (1000,))
    assert set(labels.tolist()) == set(range(10))


@pytest.mark.parametrize("options, status, said", [
    ([], 0, "recorded: [1-9][0-9]* results of 2 ops, 0 samples failed$"),
    (["--seconds", "0"], 3, "recorded: 0 results of 0 ops, 0 samples failed, no time was left for neg abs$")])
def test_a_record_that_is_not_whole_is_no_success(tmp_path, options, status, said):
    pytest.importorskip("yoke")
    command = [sys.executable, "tests/gpu/samples.py", "cpu", str(tmp_path / "found.npz"), "--small", "--ops", "neg,abs", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert re.search(said, done.stdout.strip())


def test_half_a_record_is_told_and_not_compared(compare, tmp_path):
    half = tmp_path / "cuda-0.npz"
    half.write_bytes(b"PK\x03\x04half")
    found, wrong, broken, left = compare.load([half])
    assert (found, wrong, left) == ({}, {}, []) and "cuda-0.npz cannot be read" in broken[0]


def test_an_op_that_fails_anywhere_is_a_difference(compare, capsys):
    options = argparse.Namespace(device="cuda")
    value = {"neg|0 neg(5)|float32|float32": np.ones(5, np.float32)}
    wrong = {"neg|0 neg(5)|float32": "UnsupportedError: neg has no kernel"}
    assert compare.judge((value, {}), (value, {}), "cpu", options) == (1, 1, 0)
    assert compare.judge(({}, wrong), (value, {}), "cpu", options) == (0, 0, 1)
    assert compare.judge(({}, wrong), ({}, wrong), "cpu", options) == (0, 0, 2)
    assert "FAILS on cuda alone: neg|0 neg(5)|float32: UnsupportedError" in capsys.readouterr().out


def test_a_half_that_travels_says_the_same_of_every_element(compare, tmp_path):
    import halves

    draw = np.random.default_rng(1)
    found = {"add|0|float32": draw.random((3, 5), np.float32), "neg|1|float32": draw.random(70_001).astype(np.float32),
             "sum|2|float64": np.float64(1.5).reshape(()), "eq|3|bool": np.arange(5000) % 3 == 0, "add|4|float32": np.zeros((0, 3), np.float32)}
    size = halves.write(tmp_path / "half.npz", found, {"sources": "s"})
    back, mark = halves.read(tmp_path / "half.npz")
    assert mark["sources"] == "s" and size < 40_000 and set(back) == set(found)
    assert all(np.array_equal(back[name], one) for name, one in found.items() if one.size <= halves.WHOLE)
    plain = found["neg|1|float32"]
    near = plain.copy()
    near[1] += np.float32(1e-7)  # beside the sample
    assert compare.differs("neg|1|float32", plain, back["neg|1|float32"], None, True) == (True, None)
    same, problem = compare.differs("neg|1|float32", near, back["neg|1|float32"], None, True)
    assert not same and "none of the sample" in problem
    assert compare.differs("neg|1|float32", near, back["neg|1|float32"], None, False)[1] is None
    far = plain + np.float32(1)
    assert "differ, at" in compare.differs("neg|1|float32", far, back["neg|1|float32"], None, True)[1]
    odd = np.where(np.arange(3000) % 2, np.nan, -0.0)
    assert halves.digest_of(odd) == halves.digest_of(np.where(np.arange(3000) % 2, -np.nan, 0.0))


@pytest.mark.parametrize("change, told", [
    (lambda mark: {**mark, "sources": "other"}, "half.npz was made of other sources, other, than this tree's, s"),
    (lambda mark: {**mark, "samples": "other"}, "half.npz was made of other samples, other, than this tree's"),
    (None, "half.npz cannot be read: ")])
def test_a_half_of_another_tree_is_told_and_not_compared(compare, tmp_path, monkeypatch, change, told):
    import halves

    monkeypatch.setattr(compare, "samples_digest", lambda: "d")
    file = tmp_path / "half.npz"
    mark = {"sources": "s", "samples": "d", "wrong": {}, "left": []}
    halves.write(file, {"add|0|float32": np.ones(3, np.float32)}, change(mark) if change else mark)
    if change is None:
        file.write_bytes(file.read_bytes()[:50])
    found, wrong, broken, left = compare.take(argparse.Namespace(carried=str(file), sources="s"))
    assert (found, wrong, left) == ({}, {}, []) and told in broken[0]


def test_versions_that_machine_code_needs_are_compared_with_this_machines(jobs, tmp_path):
    import build

    (tmp_path / "lib.so").write_bytes(build.ELF + b"\0GLIBC_2.4\0GLIBC_2.34\0GLIBCXX_3.4.9\0GLIBCXX_3.4.30\0GLIBC_PRIVATE\0")
    (tmp_path / "text").write_bytes(b"\0GLIBC_9.9\0")
    assert build.needs(tmp_path) == {"GLIBC": "2.34", "GLIBCXX": "3.4.30"}
    here = build.provided()["GLIBC"]
    mark = {"compute capability": "9.0", "sources": "s", "processor": build.platform.machine(), "needs": {"GLIBC": here}}
    assert build.misfit(mark, "x", "9.0", "s") == ""
    mark["needs"] = {"GLIBC": "99.1"}
    assert build.misfit(mark, "x", "9.0", "s") == f"x needs GLIBC 99.1, this machine has {here}: make the build on an older system"


def test_a_full_disk_is_told_before_a_run(jobs, monkeypatch, tmp_path):
    import machine

    for free, told in ((10 << 30, ""), (1 << 29, f"{tmp_path} has 0.5 GiB of room; a run takes up to 2 GiB")):
        monkeypatch.setattr(machine.shutil, "disk_usage", lambda folder, free=free: argparse.Namespace(free=free))
        assert machine.little_room(tmp_path) == told


def test_launches_of_a_step_are_added_up_by_kernel(jobs):
    import ncu

    table = subprocess.run(["sh", str(ROOT / "tests/gpu/rehearsal/emulated/ncu"), "--log-file", "/dev/stdout", "--target-processes", "x", "true"],
                           capture_output=True, text=True, check=True).stdout
    rows = ncu.add_up(ncu.launches(table))
    assert [row[:2] for row in rows] == [("sm90_gemm", 1), ("yoke::map<float>", 1)]
    assert [row[2:] for row in rows] == [pytest.approx((1.5e-3, 0, 0.9)), pytest.approx((12.5e-6, 0.8, 0))]
    whole, first, *_ = ncu.figures("gpt2", ncu.launches(table))
    assert whole["name"] == "all 2 launches of gpt2" and first["note"] == "1 launches, 99.2% of the time, 0% of memory's peak, 90% of the multiprocessors'"
    assert ncu.launches("==ERROR== ERR_NVGPUCTRPERM\n") == []


@pytest.mark.parametrize("text, reason", [
    ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "ERR_NVGPUCTRPERM - The user does not have permission"),
    ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "Failed to initialize the profiler: LibraryNotLoaded")])
def test_a_profiler_without_leave_says_so(tmp_path, text, reason):
    tool = tmp_path / "ncu"
    tool.write_text(f"#!/bin/sh\necho '{text}'\nexit 1\n")
    tool.chmod(0o755)
    done = subprocess.run([sys.executable, "-B", "tests/gpu/ncu.py", "gpt2", "--ncu", tool, "--json", tmp_path / "x.json", "--keep", tmp_path], cwd=ROOT,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"nothing is profiled: {reason}")


def test_layers_of_real_sizes_have_the_errors_of_their_dtype(tmp_path):
    pytest.importorskip("yoke")
    done = subprocess.run([sys.executable, "-B", "tests/gpu/sizes.py", "attention", "--device", "cpu", "--small"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "own kernels: 12 layers right, 0 wrong", done.stdout + done.stderr
