"""Changes of files that inotify announces."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluiceway.connectors.file import changes
from sluiceway.connectors.file.changes import FileWatch
from sluiceway.connectors.inotify import PerProcess

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")

_SECONDS = 20.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "followed.txt"


class Watched:
    """A watch and whether it was woken."""

    def __init__(self, path: Path) -> None:
        self.woken = threading.Event()
        self.watch = FileWatch(path, self.woken.set)

    def wakes(self, change: Callable[[], object]) -> bool:
        self.woken.clear()
        assert self.watch.arm()
        assert not self.woken.is_set()
        change()
        return self.woken.wait(_SECONDS)


@pytest.fixture
def watched(file: Path) -> Iterator[Watched]:
    found = Watched(file)
    yield found
    found.watch.close()


def append(path: Path, text: str = "x\n") -> None:
    with path.open("a") as out:
        out.write(text)


def test_an_appended_line_wakes(file: Path, watched: Watched) -> None:
    file.touch()
    assert all(watched.wakes(lambda: append(file)) for _ in range(3))


def test_a_truncated_file_wakes(file: Path, watched: Watched) -> None:
    append(file)
    assert watched.wakes(lambda: os.truncate(file, 0))


def test_a_file_that_another_one_replaces_wakes_although_it_is_still_open(file: Path, watched: Watched) -> None:
    append(file)
    other = file.with_name("other")
    append(other)
    with file.open():
        assert watched.wakes(lambda: other.rename(file))
        assert watched.wakes(lambda: append(file)), "the new file is watched from then on"


def test_a_file_that_is_moved_away_and_created_again_wakes_twice(file: Path, watched: Watched) -> None:
    append(file)
    assert watched.wakes(lambda: file.rename(file.with_suffix(".1")))
    assert watched.wakes(file.touch)
    assert watched.wakes(lambda: append(file))


def test_a_missing_file_wakes_when_it_is_created(file: Path, watched: Watched) -> None:
    assert watched.wakes(lambda: append(file))


def test_the_target_of_a_symbolic_link_wakes(file: Path, watched: Watched) -> None:
    target = file.with_name("target")
    append(target)
    file.symlink_to(target)
    assert watched.wakes(lambda: append(target))


def test_a_directory_in_place_of_the_file_wakes_when_it_is_removed(file: Path, watched: Watched) -> None:
    file.mkdir()
    assert watched.wakes(file.rmdir)


def test_a_missing_folder_and_a_file_in_place_of_it_cannot_be_watched(tmp_path: Path) -> None:
    append(tmp_path / "plain")
    for folder in ("missing", "plain"):
        assert not Watched(tmp_path / folder / "file").watch.arm()


def test_several_watches_of_one_file_and_of_one_folder_all_wake(file: Path) -> None:
    others = [Watched(file) for _ in range(3)] + [Watched(file.with_name("not-yet"))]
    file.touch()
    for each in others:
        assert each.watch.arm()
    append(file)
    assert all(each.woken.wait(_SECONDS) for each in others[:3])
    assert not others[3].woken.is_set()
    append(file.with_name("not-yet"))
    assert others[3].woken.wait(_SECONDS)


def test_a_closed_watch_does_not_wake_and_leaves_others_alone(file: Path) -> None:
    file.touch()
    closed, other = Watched(file), Watched(file)
    assert closed.watch.arm()
    assert other.watch.arm()
    closed.watch.close()
    append(file)
    assert other.woken.wait(_SECONDS)
    assert not closed.woken.is_set()
    assert not closed.watch.arm()


def test_a_busy_file_wakes_once_for_each_time_that_it_is_watched(file: Path) -> None:
    calls: list[float] = []
    woken = threading.Event()

    def wake() -> None:
        calls.append(time.monotonic())
        woken.set()

    watch = FileWatch(file, wake)
    file.touch()
    assert watch.arm()
    for _ in range(100):
        append(file)
    assert woken.wait(_SECONDS)
    after = Watched(file)
    assert after.wakes(lambda: append(file)), "so that all earlier events were read"
    assert len(calls) == 1
    watch.close()


def test_a_watch_that_misses_changes_gives_up(file: Path, watched: Watched) -> None:
    file.touch()
    for _ in range(2):
        assert watched.watch.arm()
        watched.watch.looked(found=True)
    assert watched.wakes(lambda: append(file)), "an event restores the trust"
    for _ in range(3):
        assert watched.watch.arm()
        watched.watch.looked(found=False)
        watched.watch.looked(found=True)
    assert not watched.watch.arm()


def test_all_watches_of_a_process_share_an_instance(tmp_path: Path) -> None:
    def instances() -> int:
        return sum("inotify" in str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())

    first = Watched(tmp_path / "0")
    assert first.watch.arm()
    before = instances()
    assert all(Watched(tmp_path / str(number)).watch.arm() for number in range(200))
    assert instances() == before


def test_without_inotify_nothing_is_watched(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.touch()
    monkeypatch.setattr(changes, "_shared", PerProcess(changes.FileChanges))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not Watched(file).watch.arm()


def test_a_full_table_of_instances_means_that_files_are_read_instead(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused() -> changes.FileChanges:
        raise OSError(24, "Too many open files")

    file.touch()
    monkeypatch.setattr(changes, "_shared", PerProcess(refused))
    with caplog.at_level("INFO"):
        assert [Watched(file).watch.arm() for _ in range(2)] == [False, False]
    assert caplog.text.count("inotify is not available: [Errno 24] Too many open files") == 1


def test_a_forked_process_has_an_instance_of_its_own(file: Path, watched: Watched) -> None:
    file.touch()
    assert watched.watch.arm()
    child = os.fork()
    if child == 0:  # leave at once, whatever happens: this is a copy of the test process
        woken = threading.Event()
        watch = FileWatch(file, woken.set)
        armed = watch.arm()
        append(file)
        os._exit(0 if armed and woken.wait(_SECONDS) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
