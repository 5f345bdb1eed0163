"""Lists of packages and of files that an installation needs. `./dev soak install` runs the section "Install" of docs/building.md."""

import re

import documents

ROOT = documents.ROOT
BUILDING = ROOT / "docs/building.md"


def test_the_packages_to_install_are_those_that_dev_installs():
    installing = documents.blocks(documents.section(BUILDING, "Install"), "sh")[0]
    named = set(re.sub(r"^sudo apt-get install -y|\\\n", " ", installing).split())
    dev = re.search(r"^readonly packages=\((.*?)\)", (ROOT / "dev").read_text(), re.S | re.M)[1].split()
    assert len(named) > 10 and named - {*dev} == {"luarocks"}


def test_the_rockspec_has_every_file_of_the_lua_module():
    rockspec = (ROOT / "yoke-0.1.0-1.rockspec").read_text()
    files = [path.relative_to(ROOT) for pattern in ("src/*.c", "yoke/**/*.lua") for path in (ROOT / "bindings/lua").glob(pattern)]
    editors = {"meta.lua"} | {path.name for path in files if path.name.startswith("api")}  # for editors alone
    wanted = [str(path) for path in files if path.name not in editors]
    assert len(wanted) > 30, wanted
    assert [path for path in wanted if f'"{path}"' not in rockspec] == []
