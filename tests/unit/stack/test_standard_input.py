"""Standard input of standalone mode, from the process that was started to a task in another one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sluiceway.config.environment import STANDARD_INPUT
from sluiceway.connectors.file.lines import Lines
from sluiceway.connectors.file.source import open_standard_input
from sluiceway.connectors.file.tail import StreamTail
from sluiceway.errors import ConnectError
from sluiceway.stack.standalone import StandardInput
from support.eventually import eventually


class Terminal:
    """A pipe instead of a terminal: what is typed, and how much of it nobody has read."""

    def __init__(self) -> None:
        self.readable, self._writable = os.pipe()
        os.set_blocking(self.readable, True)

    def type(self, text: str) -> None:
        os.write(self._writable, text.encode())

    def end(self) -> None:
        os.close(self._writable)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    with StandardInput(made.readable):
        yield made
    made.end()


def lines(tail: StreamTail, count: int) -> list[str]:
    """Read until there are so many lines."""
    found: list[str] = []

    def enough() -> bool:
        read: Lines = tail.read()
        found.extend(line for line, _ in read.split())
        return len(found) >= count

    eventually(enough, what=f"{count} lines")
    return found


def test_lines_reach_a_reader_that_opens_the_pipe_later(terminal: Terminal) -> None:
    terminal.type("one\ntwo\n")
    tail = open_standard_input()
    assert lines(tail, 2) == ["one", "two"]
    terminal.type("three\n")
    assert lines(tail, 1) == ["three"]
    tail.close()


def test_nothing_is_read_before_a_task_asks_for_it(terminal: Terminal) -> None:
    terminal.type("one\n")
    assert os.read(terminal.readable, 100) == b"one\n"  # still there


def test_a_restarted_task_continues_with_what_the_one_before_has_left(terminal: Terminal) -> None:
    first = open_standard_input()
    terminal.type("one\n")
    assert lines(first, 1) == ["one"]
    first.close()
    terminal.type("two\nthree\n")
    second = open_standard_input()
    assert lines(second, 2) == ["two", "three"]
    second.close()


def test_processes_that_are_started_find_the_pipe_and_others_do_not(terminal: Terminal) -> None:
    terminal.type("typed\n")
    code = (
        "from sluiceway.connectors.file.source import open_standard_input\n"
        "tail = open_standard_input()\n"
        "while not (found := tail.read()).raw: pass\n"
        "print(found.split())\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert "typed" in done.stdout
    pipe = os.environ.pop(STANDARD_INPUT)
    assert pipe
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert "which a task on Spark does not have. Set 'file', or run the connector with 'sluiceway standalone'." in done.stderr


def test_a_task_without_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STANDARD_INPUT, raising=False)
    with open(os.devnull) as nothing:  # noqa: PTH123 (has no folder)
        monkeypatch.setattr("sys.stdin", nothing)
        with pytest.raises(ConnectError, match="Set 'file'"):
            open_standard_input()


def test_the_pipe_is_gone_afterwards() -> None:
    terminal = Terminal()
    with StandardInput(terminal.readable) as made:
        assert os.environ[STANDARD_INPUT] == str(made.pipe)
    assert not made.pipe.exists()
    assert STANDARD_INPUT not in os.environ
    terminal.end()
