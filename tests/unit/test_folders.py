"""Scratch folders go with their process, also one that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sluiceway.folders import scratch_folder

_HOLDS = """
import sys
from sluiceway.folders import scratch_folder
with scratch_folder(sys.argv[1]) as folder:
    (folder / "secret").write_text("s")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _holder(parent: Path, kind: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDS, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(parent)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_is_private_and_is_removed_in_the_end(parent: Path) -> None:
    with pytest.raises(ValueError, match="stop"), scratch_folder("a") as folder:  # noqa: PT012
        assert folder.parent == parent
        assert folder.stat().st_mode & 0o077 == 0
        (folder / "file").write_text("x")
        raise ValueError("stop")
    assert list(parent.iterdir()) == []


def test_the_next_use_removes_folders_of_killed_processes_and_no_others(parent: Path) -> None:
    (killed, left), (living, held), (other, of_other_kind) = (_holder(parent, kind) for kind in ("a", "a", "b"))
    foreign = parent / "sluiceway-a-foreign"
    foreign.mkdir()
    (parent / "sluiceway-a-link").symlink_to(foreign)
    for process in (killed, other):
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left.exists()
    with scratch_folder("a") as mine:
        assert set(parent.iterdir()) == {mine, held, of_other_kind, foreign, parent / "sluiceway-a-link"}
        assert (held / "secret").read_text() == "s"
    living.communicate("")
    assert not held.exists()
