# SPDX-License-Identifier: Apache-2.0
"""Dependencies between the parts of src/ point one way (CONTRIBUTING.md, "Where things go")."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from source_tree import REPO_ROOT, all_files, cpp_files, read

# Each part and the other parts whose headers it may include.
REQUEST = {"base", "net", "protocol", "store", "request"}
ALLOWED = {
    "base": set(),
    "gpu": {"base"},
    "net": {"base"},
    "protocol": {"base", "net"},
    "store": {"base", "protocol"},
    "request": {"base", "net", "protocol", "store"},
    "nic_cache": {"base", "net", "store"},
    "edge": {"base"},
    "engine": REQUEST | {"edge"},
    "io": {"base", "net", "protocol"},
    "options": {"base"},
    "admin": REQUEST | {"engine", "options"},
    "worker": REQUEST | {"engine", "io", "options"},
    "client": {"base", "io"},
    "tools": set(),  # programs in Python
    "server": REQUEST | {"engine", "io", "options", "admin", "worker", "nic_cache"},
}
# Folders that may include the CUDA runtime's part, gpu/, besides: only these know of a GPU.
SEES_GPU = ("gpu", "edge", "store/cuda", "engine/cuda", "engine/testing", "server")
# The simulators: what each may include besides itself. `workload` is bench/workload. A simulator has
# no access to engines or transports; nic_cache takes the store as a simulated cache from hitrate.
ALLOWED_IN_SIM = {
    "traces": {"workload"},
    "hitrate": {"traces", "workload", "base", "store"},
    "nic_cache": {"traces", "hitrate", "workload", "base"},
    "simt": {"traces", "workload", "base", "net", "protocol", "store", "request"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
SOURCE = REPO_ROOT / "src"


def violations(part: str, text: str) -> list[str]:
    """The quoted includes of `text`, a file of `part`, that the rule forbids."""
    found = []
    for name in INCLUDE.findall(text):
        target = name.split("/")[0]
        if "/" not in name or target not in ALLOWED | {"warpcache": set()}:
            found.append(f'"{name}" is not of the form "part/file.h"')
        elif target == "gpu" and part != "gpu":
            continue  # test_only_these_folders_know_of_a_gpu
        elif target not in ALLOWED[part] | {part, "warpcache"}:
            found.append(f'{part} must not include "{name}"')
    return found


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def test_every_folder_of_src_is_a_known_part():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert folders and folders <= set(ALLOWED)


@pytest.mark.parametrize("part", ALLOWED)
def test_includes_of(part):
    files = [path for path in cpp_files(SOURCE) if part_of(path) == part]
    if not files:
        pytest.skip(f"src/{part} has no code yet")
    found = [f"{p.relative_to(REPO_ROOT)}: {v}" for p in files for v in violations(part, read(p))]
    assert found == []


@pytest.mark.parametrize("part", ALLOWED_IN_SIM)
def test_includes_of_simulators(part):
    files = cpp_files(REPO_ROOT / "sim" / part)
    found = [
        f"{path.relative_to(REPO_ROOT)}: {name}"
        for path in files
        for name in INCLUDE.findall(read(path))
        if name.split("/")[0] not in ALLOWED_IN_SIM[part] | {part}
    ]
    assert files and found == []


def test_included_files_exist():
    missing = [
        f"{path.relative_to(REPO_ROOT)}: {name}"
        for path in cpp_files(SOURCE)
        for name in INCLUDE.findall(read(path))
        if not (SOURCE / name).is_file() and not (REPO_ROOT / "include" / name).is_file()
    ]
    assert missing == []


def gpu_includes(folder: str, text: str) -> list[str]:
    """The includes of gpu/ in `text`, a file of `folder`, that the rule forbids."""
    if any(f"{folder}/".startswith(f"{known}/") for known in SEES_GPU):
        return []
    return [name for name in INCLUDE.findall(text) if name.startswith("gpu/")]


def test_only_these_folders_know_of_a_gpu():
    found = [
        f"{path.relative_to(REPO_ROOT)}: {name}"
        for path in cpp_files(SOURCE)
        for name in gpu_includes(str(path.parent.relative_to(SOURCE)), read(path))
    ]
    assert found == []


def test_only_worker_and_server_see_both_engine_and_io():
    assert {p for p, seen in ALLOWED.items() if {"engine", "io"} <= seen} == {"worker", "server"}


def test_options_and_admin_are_not_on_the_way_of_a_request():
    on_the_way = ("base", "net", "protocol", "store", "request", "engine", "io")
    assert all(not {"options", "admin"} & ALLOWED[part] for part in on_the_way)


@pytest.mark.parametrize(
    ("part", "line", "forbidden"),
    [
        ("protocol", '#include "base/status.h"', False),
        ("protocol", '#include "store/host/store.h"', True),
        ("engine", '#include "io/transport.h"', True),
        ("io", '  #  include "engine/engine.h"', True),
        ("store", '#include "admin/stats.h"', True),
        ("request", '#include "../store/store.h"', True),
        ("request", '#include "stages.h"', True),
        ("server", '#include "options/options.h"', False),
        ("base", "#include <cstdint>", False),
    ],
)
def test_the_check_itself(part, line, forbidden):
    assert bool(violations(part, f"// text\n{line}\n")) == forbidden


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [("store/cuda", False), ("store/host", True), ("engine/cuda/packets", False), ("engine/cpu", True)],
)
def test_the_check_of_gpu_itself(folder, forbidden):
    assert bool(gpu_includes(folder, '#include "gpu/device.h"\n')) == forbidden


# Tests and benchmarks share testing/harness, and the streams of bench/workload; nothing else of each other.
FOREIGN_PATH = {
    "tests": re.compile(r'sys\.path.*["\'/]bench["\'/]'),
    "bench": re.compile(r'sys\.path.*["\'/]tests["\'/]'),
}


@pytest.mark.parametrize("folder", FOREIGN_PATH)
def test_tests_and_benchmarks_do_not_import_each_other(folder):
    files = [p for p in (REPO_ROOT / folder).rglob("*") if p.suffix == ".py" or p.name == "run"]
    assert files and [p for p in files if FOREIGN_PATH[folder].search(read(p))] == []


def test_the_check_of_foreign_paths_itself():
    assert FOREIGN_PATH["tests"].search('sys.path.insert(0, str(ROOT / "be' + 'nch" / "memory"))')
    assert not FOREIGN_PATH["bench"].search('sys.path.insert(0, str(ROOT / "testing"))')


@pytest.mark.parametrize("whole", ("src", "bench"))
def test_contributing_names_every_folder(whole):
    """A newcomer finds there what a folder holds."""
    root = REPO_ROOT / whole
    folders = {path.relative_to(root).parts[0] for path in all_files(root) if path.parent != root}
    rows = re.findall(rf"^\| `{whole}/.*", read(REPO_ROOT / "CONTRIBUTING.md"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(rf"`(?:{whole}/)?([a-z_]+)/", row)}
    assert sorted(folders - named) == []
