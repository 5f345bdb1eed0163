"""States on file systems with missing calls: each is saved and loaded, and a single warning names the missing promise, or an error
gives the remedy.
"""
import errno
import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
SOURCE = TESTS / "fakes" / "file_systems" / "file_systems.c"
RUN = TESTS / "python" / "file_system_run.py"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it stands in for calls of Linux")

FOLDER, FILE = "a saved state may be lost when the machine stops (fsync of a folder", "the data of a saved state may be lost when the machine stops (fsync of a file"
LOCK, MODE = "two processes may save to one folder at a time (flock", "other permissions than the replaced file (fchmod"
MOVE = "a step may be incomplete while it is saved or removed (rename of a folder"
# Missing promises of each file system.
SYSTEMS = {"cifs": {FOLDER, MODE}, "nfs": {LOCK}, "lustre": {LOCK}, "gpfs": set(), "cephfs": set(), "bucket": {MOVE}, "sshfs": set(), "9p": {MODE},
           "virtiofs": set(), "exfat": {MODE}, "overlay": {MOVE}, "tmpfs": set(), "synthetic": {FOLDER, FILE, LOCK, MODE, MOVE}}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("library") / "file_systems.so"
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", SOURCE, "-o", made], check=True)
    return made


def run(library, system, folder, *options, program=(RUN,)):
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))
    variables = {**os.environ, "LD_PRELOAD": preload, "YOKE_TEST_FOLDER": str(folder)} | ({"YOKE_TEST_FILE_SYSTEM": system} if system else {})
    done = subprocess.run([sys.executable, *program, str(folder), *options], capture_output=True, text=True, timeout=300, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("system", SYSTEMS)
def test_states_are_saved_and_what_is_not_promised_is_told_once(library, tmp_path, system):
    run(library, None, tmp_path, "before")
    options = ["alone"] * (system == "cifs") + ["unlocked"] * (LOCK in SYSTEMS[system])
    done = run(library, system, tmp_path, *options)
    assert "wrong:" not in done.stdout, done.stdout + done.stderr
    told = [line for line in done.stderr.splitlines() if "does not support some calls" in line]
    for promise in (FOLDER, FILE, LOCK, MODE, MOVE):
        assert sum(promise in line for line in told) == (promise in SYSTEMS[system]), done.stderr
    assert done.stderr.count("Warning: ") == len(told), done.stderr


def test_a_bucket_that_renames_nothing_says_so_and_leaves_no_half_of_a_state(library, tmp_path):
    program = ("-c", """
import sys
import yoke
for save in (lambda: yoke.save(sys.argv[1] + "/a.safetensors", {"k": 1}),
             lambda: yoke.save(sys.argv[1] + "/b.safetensors", {"x": yoke.ones(9), "y": yoke.ones(9)}, max_shard=40),
             lambda: yoke.CheckpointManager(sys.argv[1] + "/run").save(1, {"k": 1}, blocking=True)):
    try:
        save()
    except yoke.IOError as error:
        print(error.errno, error)
""")
    done = run(library, "bucket-sequential", tmp_path, program=program)
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stdout + done.stderr
    for line in lines:
        assert line.startswith(f"{errno.ENOSYS} ") and "cannot rename files" in line and "save to a local folder" in line, line
    assert not (tmp_path / "a.safetensors").exists() and not (tmp_path / "b.safetensors.index.json").exists()


def test_a_bucket_that_renames_nothing_leaves_the_former_step(library, tmp_path):
    run(library, None, tmp_path, program=("-c", """
import sys
import yoke
yoke.CheckpointManager(sys.argv[1] + "/run").save(1, {"k": 1}, blocking=True)
"""))
    done = run(library, "bucket-deletes", tmp_path, program=("-c", """
import sys
import yoke
manager = yoke.CheckpointManager(sys.argv[1] + "/run")
try:
    manager.save(1, {"k": 2}, blocking=True)
except yoke.IOError as error:
    print(error.errno, manager.load()["k"])
"""))
    assert done.stdout == f"{errno.ENOSYS} 1\n", done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become two users")
def test_another_users_step_in_a_sticky_folder_is_left_whole(folder_for_users):
    shared = folder_for_users / "run"
    shared.mkdir()
    os.chown(shared, 0, 5000)
    shared.chmod(0o1770)
    script = """
import os
import sys
import yoke
os.setgroups([5000])
os.setgid(5000)
os.setuid(int(sys.argv[2]))
os.umask(0o002)
manager = yoke.CheckpointManager(sys.argv[1])
try:
    manager.save(1, {"k": int(sys.argv[2])}, blocking=True)
except yoke.IOError as error:
    print(error.errno)
print(manager.load()["k"])
"""
    outs = [subprocess.run([sys.executable, "-c", script, shared, str(user)], capture_output=True, text=True, timeout=300) for user in (6001, 6002, 6001)]
    assert [each.stdout for each in outs] == ["6001\n", f"{errno.EPERM}\n6001\n", "6001\n"], outs
    assert sorted(each.name for each in shared.iterdir() if each.name != ".lock") == ["step-1"], list(shared.iterdir())


def test_a_step_in_use_is_replaced_on_cifs_once_it_is_let_go(library, tmp_path):
    program = ("-c", """
import sys
import yoke
manager = yoke.CheckpointManager(sys.argv[1] + "/run")
manager.save(1, {"x": yoke.ones(5000)}, blocking=True)
state = manager.load()
try:
    manager.save(1, {"x": yoke.zeros(5000)}, blocking=True)
except yoke.IOError as error:
    print(error.errno, "release the tensors that were loaded from it" in str(error), manager.load()["x"].sum().item())
del state
manager.save(1, {"x": yoke.zeros(5000)}, blocking=True)
print(manager.load()["x"].sum().item())
""")
    assert run(library, "cifs", tmp_path, program=program).stdout == f"{errno.EACCES} True 5000.0\n0.0\n"


@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EDQUOT", "EACCES", "EROFS"])
def test_an_error_is_none_that_a_file_system_lacks(library, tmp_path, error):
    source = tmp_path / "fails.c"
    source.write_text(f"""
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int file)
{{
    struct stat about;
    if (fstat(file, &about) == 0 && S_ISDIR(about.st_mode)) return errno = {error}, -1;
    return (int)syscall(SYS_fsync, file);
}}
""")
    made = tmp_path / "fails.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", made], check=True)
    program = ("-c", """
import sys
import yoke
try:
    yoke.save(sys.argv[1] + "/a.safetensors", {"k": 1})
except yoke.IOError as error:
    print(error.errno)
""")
    assert run(made, None, tmp_path, program=program).stdout == f"{getattr(errno, error)}\n"
