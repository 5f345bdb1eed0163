"""The fake NVML library for a scenario: found in a build tree, copied without the calls missing in an older driver.

The copy's table of dynamic names gets a wrong letter in the name of a missing call. The loader finds names by a hash and then
compares letters, so the call is no longer found. All other parts of the library stay in place.
"""
import os
import pathlib
import shutil

from schema import Mistake, nearest


def find_library(here, name, given):
    """Returns the fake library: a path that was given, the tree of YOKE_BUILD_DIR, or the newest build tree."""
    build = os.environ.get("YOKE_BUILD_DIR")
    if given:
        places = [pathlib.Path(given)]
    elif build:
        places = [pathlib.Path(build) / "tests" / "fakes" / "edge" / name]
    else:
        places = list(here.parents[2].glob(f"build/*/tests/fakes/edge/{name}"))
    found = [place for place in places if place.is_file()]
    if not found:
        looked = ", ".join(map(str, places)) or f"{here.parents[2]}/build/*/tests/fakes/edge"
        raise Mistake(f"there is no fake {name} ({looked}): build the target fake_nvml, or name it with --nvml")
    return max(found, key=lambda place: place.stat().st_mtime).resolve()


def without(code, names):
    """Returns the bytes of a library in which names are not found."""
    for name in names:
        wanted = b"\0" + name.encode() + b"\0"
        if wanted not in code:
            known = {each.decode() for each in code.split(b"\0") if each.startswith(b"nvml") and each.isascii()}
            raise Mistake(f"nvml.missing_symbols: the fake library has no {name} to take away{nearest(name, known)}")
        code = code.replace(wanted, b"\0X" + name.encode()[1:] + b"\0")
    return code


def provide(library, place, missing):
    """Puts a library at a place: a link where nothing is missing, else a copy."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    if not missing:
        place.symlink_to(library)
        return
    place.write_bytes(without(library.read_bytes(), missing))
    shutil.copymode(library, place)
