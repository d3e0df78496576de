"""Logs that are written, rotated, and read in any order: no line is lost or read twice."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.connectors.folder import task
from support.folder_task import FolderTask
from support.rotated_log import KEEPING, LOSING, RotatedLog

Step = tuple[str, int]


class Follower(FolderTask):
    """A task that follows a log."""

    def __init__(self, log: Path, **config: str) -> None:
        super().__init__(**{"paths": str(log), "mode": "logs", "rotated.close.ms": "0", **config})
        self.lost = 0

    def restart_after(self, most: int) -> None:
        """Poll once more, keep at most so many records, and start again after them."""
        self.take(self.poll()[:most] if most else [])
        self.close()
        self.start()

    def close(self) -> None:
        self.lost += int(self.metric("generations-lost"))
        self.stop()

    @property
    def found(self) -> list[str]:
        return [str(record.value) for record in self.records]

    def numbers(self) -> list[int]:
        """Return the numbers of the lines, without comments."""
        return [int(line.split()[0]) for line in self.found if not line.startswith("#")]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RotatedLog]:
    made = RotatedLog(tmp_path / "app.log")
    yield made
    made.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 60)),
        st.tuples(st.just("rotate"), st.just(0)),
        st.tuples(st.just("read"), st.just(0)),
        st.tuples(st.just("restart"), st.integers(0, 40)),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(mode=st.sampled_from(sorted(KEEPING)), steps=STEPS)
def test_each_line_is_read_once_and_in_order_however_the_log_is_rotated(mode: str, steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = RotatedLog(Path(folder, "app.log"))
        log.write(1)
        follower = Follower(log.path)
        follower.run()
        for step, number in steps:
            if step == "write":
                log.write(number)
            elif step == "rotate":
                log.rotate(mode)
            elif step == "read":
                follower.run()
            else:
                follower.restart_after(number)
        follower.run()
        follower.close()
        log.close()
        assert follower.numbers() == list(range(log.written))
        assert not follower.lost


@pytest.mark.parametrize("mode", KEEPING)
def test_generations_that_begin_alike_are_told_apart(log: RotatedLog, mode: str) -> None:
    """Their first kilobyte is the same, so that only the bytes before the position tell which of them was read."""
    head = b"# " + b"h" * 2000 + b"\n"
    log.write_in_part(head)
    log.write(10)
    follower = Follower(log.path)
    follower.run()
    follower.close()
    for _ in range(3):
        log.rotate(mode)
        log.write_in_part(head)
        log.write(10)
    follower.start()
    follower.run()
    assert follower.numbers() == list(range(40))


def test_a_log_that_is_gone_for_long_is_forgotten_until_it_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, away = tmp_path / "app.log", tmp_path / "away"
    log.write_text("0\n1\n")
    follower = Follower(tmp_path, **{"paths.exclude": "away"})
    follower.run()
    log.rename(away)
    follower.run()
    assert list(follower.task._readers) == [str(log)], "it may be rotated"
    monkeypatch.setattr(task, "_ABSENT_SECONDS", 0.0)
    follower.run()
    assert not follower.task._readers
    with away.open("a") as more:
        more.write("2\n")
    away.rename(log)
    follower.run()
    assert follower.numbers() == [0, 1, 2]
    follower.close()


@pytest.mark.parametrize("mode", LOSING)
def test_a_generation_that_is_gone_is_counted(log: RotatedLog, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    log.write(10)
    follower = Follower(log.path)
    follower.run()
    follower.close()
    log.write(10)
    log.rotate(mode)
    log.write(20)
    follower.start()
    follower.run()
    follower.close()
    assert follower.numbers() == [*range(10), *range(20, 40)]
    assert follower.lost == 1
    assert str(log.path) in caplog.text


@pytest.mark.parametrize("mode", ["delete", "replace"])
def test_a_file_that_is_gone_is_read_to_its_end_while_the_task_runs(log: RotatedLog, mode: str) -> None:
    log.write(10)
    follower = Follower(log.path)
    follower.run()
    log.write(10)
    log.rotate(mode)
    log.write(10)
    follower.run()
    follower.close()
    assert follower.numbers() == list(range(30))
    assert not follower.lost


def test_a_log_that_is_truncated_before_its_first_line_was_read(log: RotatedLog) -> None:
    """It was empty when it was opened, so that nothing that was read tells it from what it became."""
    log.write(1)
    follower = Follower(log.path)
    follower.run()
    log.rotate("copy and truncate")
    follower.run()
    for _ in range(2):
        log.write(2)
        log.rotate("copy and truncate")
    log.write(1)
    follower.run()
    assert follower.numbers() == list(range(6))


def test_the_same_size_does_not_hide_another_content(log: RotatedLog) -> None:
    log.write(10)
    follower = Follower(log.path)
    follower.run()
    log.rotate("overwrite")
    log.write(10)
    follower.run()
    assert follower.numbers() == list(range(20))


def test_a_line_is_held_back_until_its_end_is_written_or_its_file_is_rotated(log: RotatedLog) -> None:
    follower = Follower(log.path)
    log.write_in_part(b"000000 half")
    follower.run()
    assert follower.found == []
    log.write_in_part(b" whole\n000001 no end")
    follower.run()
    assert follower.found == ["000000 half whole"]
    log.rotate("rename")
    log.write_in_part(b"000002 next\n")
    follower.run()
    assert follower.found == ["000000 half whole", "000001 no end", "000002 next"]


def test_what_is_written_late_to_a_rotated_file_is_read(log: RotatedLog) -> None:
    log.write(1)
    follower = Follower(log.path, **{"rotated.close.ms": "600000"})
    follower.run()
    rotated = log.path.with_name("app.log.1")
    log.path.rename(rotated)
    rotated.touch()  # now instead of by the log's clock
    log.path.write_bytes(b"000002 new\n")
    follower.run()
    with rotated.open("ab") as late:
        late.write(b"000001 late\n")
    follower.run()
    assert follower.numbers() == [0, 1]


def test_a_pattern_of_rotated_names_reads_each_generation_once(log: RotatedLog) -> None:
    for _ in range(3):
        log.write(5)
        log.rotate("rename")
    log.write(5)
    follower = Follower(log.path, paths=f"{log.path}*")
    follower.run()
    log.rotate("rename")
    log.write(5)
    follower.run()
    assert follower.numbers() == list(range(25))
