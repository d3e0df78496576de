"""Folders that other users of the machine must not enter or replace, and that go with their process, also a killed one."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sluiceway.errors import ConnectError
from sluiceway.folders import private_folder, scratch_folder, scratch_folder_with_lock, write_atomically
from sluiceway.stack import up
from sluiceway.worker.start_gate import StartGate

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


def test_a_folder_stays_as_long_as_a_child_that_holds_its_lock(parent: Path) -> None:
    with scratch_folder_with_lock("a") as (folder, lock):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,))
        kept = folder.rename(parent / "sluiceway-a-of-a-killed-process")
    with scratch_folder("a"):
        assert kept.exists()
    child.communicate(b"\n")
    with scratch_folder("a"):
        assert not kept.exists()


def test_a_private_folder_is_made_for_this_user_only(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    assert stat.S_IMODE(private_folder(folder).stat().st_mode) == 0o700


def _link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o777)
    folder.symlink_to(folder.parent / "elsewhere")


def _of_another_user(folder: Path) -> None:
    folder.mkdir(mode=0o777)
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(folder, 65534, 65534)


@pytest.mark.parametrize("taken", [_link, _of_another_user, Path.touch])
def test_a_folder_that_another_user_may_have_made_is_not_used(tmp_path: Path, taken: object) -> None:
    folder = tmp_path / "shared"
    taken(folder)  # type: ignore[operator]
    with pytest.raises(PermissionError, match="link or belongs to another user"):
        private_folder(folder)
    with pytest.raises(ConnectError, match="SLUICEWAY_HOME"):
        up.up(home=folder)
    StartGate("task", folder=folder).enter()
    assert not list((tmp_path / "elsewhere").glob("*"))
    assert folder.is_file() or not list(folder.iterdir()), "a start needs no slot there, and locks no file of others"


@pytest.mark.parametrize(("umask", "mode", "found"), [(0o022, 0o644, 0o644), (0o077, 0o644, 0o600), (0o022, 0o600, 0o600)])
def test_a_file_has_no_more_rights_than_the_umask_allows(tmp_path: Path, umask: int, mode: int, found: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "f", "old")
        write_atomically(tmp_path / "f", "new", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == found
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]
