# SPDX-License-Identifier: Apache-2.0
"""tools/left_behind.py, by which ./test notices what its tests have left on the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest
from harness.patience import PATIENCE_S
from source_tree import REPO_ROOT


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The tool, for a machine in a folder. It waits for nothing."""
    loader = SourceFileLoader("left_behind", str(REPO_ROOT / "tools/left_behind.py"))
    module = module_from_spec(spec_from_loader("left_behind", loader))
    loader.exec_module(module)
    for name in ("SHARED_MEMORY", "DPDK"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(module, name, tmp_path / name)
    (tmp_path / "pages").write_text("4")
    monkeypatch.setattr(module, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(module, "PATIENCE_S", 0)
    module.folder = tmp_path / "run"
    module.folder.mkdir()
    (module.DPDK / "warpcached9999999").mkdir()
    module.before(module.folder)
    return module


def test_nothing_is_left(tool, capsys):
    (tool.folder / "kept-system").mkdir()
    assert tool.after(tool.folder) == 0 and capsys.readouterr().out == ""


def leave(tool, what: str) -> None:
    if what == "huge pages":
        tool.PAGES.write_text("6")
    else:
        place = {"file": tool.folder, "shared memory": tool.SHARED_MEMORY, "DPDK": tool.DPDK}[what]
        (place / "warpcached9999998").mkdir()


@pytest.mark.parametrize("what", ("file", "shared memory", "DPDK", "huge pages"))
def test_what_is_left_is_told(tool, what, capsys):
    leave(tool, what)
    assert tool.after(tool.folder) == 1
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 1 and ("warpcached9999998" in told[0] or "2 huge pages" in told[0])


def test_what_belongs_to_others_is_not(tool):
    """A server that runs has its folder; UCX's file of a process that was killed as it began is removed."""
    (tool.DPDK / f"warpcached{os.getpid()}").mkdir()
    (tool.DPDK / "testpmd9999998").mkdir()
    (tool.SHARED_MEMORY / "sem.of-others").touch()
    file = tool.SHARED_MEMORY / "ucx_shm_posix_658570de"
    file.touch()
    assert tool.after(tool.folder) == 0
    assert not file.exists()


def test_a_process_that_is_left_is_told(tool, capsys):
    with subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        env={**os.environ, "TMPDIR": str(tool.folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        assert tool.after(tool.folder) == 1
        assert f"process {process.pid}: " in capsys.readouterr().out
        process.communicate(b"\n", timeout=PATIENCE_S)
    assert tool.after(tool.folder) == 0
