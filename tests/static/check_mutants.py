"""Each entry of the equivalent mutants is a possible mutant: `check_mutants.py SOURCE_DIR [BUILD_DIR]`.

If a kernel's line changes, the line in tests/emu/equivalent_mutants.txt must change, too. Otherwise ./dev mutants refuses to
begin.
"""
import pathlib
import sys

import tree


def main(root):
    sys.path.insert(0, str(pathlib.Path(root).resolve() / "tests/emu/mutation"))
    import places
    known = places.equivalents()
    stale = known - {mutant.key() for path in places.kernel_files() for mutant in places.mutants_of(path)}
    tree.report("equivalent mutants", len(known), [f"equivalent_mutants.txt names no mutant: {' | '.join(key)}" for key in sorted(stale)])


if __name__ == "__main__":
    main(sys.argv[1])
