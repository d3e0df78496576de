from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.connectors.files.commit_log import CommitLog, Entry, NewFile
from sluiceway.connectors.files.filesystem.local import LocalFileSystem
from sluiceway.errors import FencedError


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def log_of(folder: str) -> CommitLog:
    return CommitLog(LocalFileSystem(), folder)


def entries(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def test_entries_are_numbered_and_old_ones_deleted(folder: str) -> None:
    log = log_of(folder)
    assert log.newest() is None
    entry: Entry | None = None
    for end in range(5):
        entry = log.append(entry, epoch=0, end=end)
    assert log.newest() == entry
    assert entries(folder) == [f"{4:020d}.json", f"{5:020d}.json"]


def test_of_two_writers_with_the_same_knowledge_one_is_fenced(folder: str) -> None:
    first, second = log_of(folder), log_of(folder)
    known = first.claim()
    second.append(known, epoch=0, end=1)
    with pytest.raises(FencedError, match="must not write any more"):
        first.append(known, epoch=0, end=2)


def test_a_writer_whose_next_number_was_deleted_long_ago_is_fenced(folder: str) -> None:
    late, other = log_of(folder), log_of(folder)
    known = late.claim()
    entry = known
    for end in range(10):
        entry = other.append(entry, epoch=0, end=end)
    with pytest.raises(FencedError):
        late.append(known, epoch=0, end=99)
    assert other.newest() == entry
    assert entries(folder) == [f"{10:020d}.json", f"{11:020d}.json"]


def test_an_answer_that_was_lost_does_not_fence_the_writer(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create = LocalFileSystem.create

    def retried(self: LocalFileSystem, path: str, data: bytes) -> bool:
        create(self, path, data)
        return create(self, path, data)

    monkeypatch.setattr(LocalFileSystem, "create", retried)
    log = log_of(folder)
    assert log.append(None, epoch=0, end=1) == log.newest()


def test_a_claim_finishes_the_commit_and_sweeps_what_was_not_committed(folder: str, tmp_path: Path) -> None:
    log, files = log_of(folder), []
    for number in range(3):
        path = log.temporary()
        output = LocalFileSystem().open(path)
        output.write(b"x")
        output.finish()
        files.append(NewFile(path, str(tmp_path / f"data/{number}")))
    log.append(None, epoch=3, end=9, files=files[:2])
    LocalFileSystem().publish(*files[0])
    claimed = log_of(folder).claim()
    assert (claimed.number, claimed.epoch, claimed.end, claimed.files) == (2, 3, 9, ())
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["0", "1"]
    assert [name for name in entries(folder) if name.endswith(".tmp")] == []


def test_a_file_that_others_moved_after_the_commit_is_no_error(
    folder: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_of(folder)
    log.append(None, epoch=0, end=9, files=[NewFile(log.temporary(), str(tmp_path / "gone"))])
    assert log_of(folder).claim().end == 9
    assert "another program has moved or deleted it" in caplog.text


def test_set_offsets_finish_the_commit_and_start_an_epoch(folder: str, tmp_path: Path) -> None:
    log = log_of(folder)
    path = log.temporary()
    output = LocalFileSystem().open(path)
    output.finish()
    claimed = log.append(None, epoch=0, end=9, files=[NewFile(path, str(tmp_path / "data/f"))])
    changed = log_of(folder).set_offset(4)
    assert (changed.epoch, changed.end) == (1, 4)
    assert (tmp_path / "data/f").exists()
    with pytest.raises(FencedError):
        log.append(claimed, epoch=0, end=20)
    assert log_of(folder).set_offset(None).end is None
