"""The committed generated files are what the generator writes now: `check_generated.py SOURCE_DIR [BUILD_DIR]`."""
import pathlib
import subprocess
import sys

import tree


def main(root):
    command = [sys.executable, "-B", str(pathlib.Path(root) / "capi" / "gen_ops.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    broken = [f"{line}: run ./dev gen and commit it" for line in done.stdout.splitlines()]
    if done.returncode and not broken:
        broken = [f"capi/gen_ops.py failed:\n{done.stderr}"]
    generated = [path for path in tree.files(root) if tree.is_generated(path)]
    tree.report("generated files", len(generated), broken)


if __name__ == "__main__":
    main(sys.argv[1])
