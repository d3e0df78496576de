"""The process of one spark-submit: starts it, reads its log, and reports its end. Runs in the Airflow task's process."""

from __future__ import annotations

import logging
import os
import re
import shlex
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sluiceway.config.environment import for_connectors
from sluiceway.provider.compat import AirflowException, AirflowFailException
from sluiceway.provider.driver.last_error import last_error
from sluiceway.provider.driver.submit_command import masked

log = logging.getLogger(__name__)

_LAST_LINES, _LAST_LINES_OF_ERROR = 20, 500
_ERROR_BEGINS = re.compile(r'Exception in thread "')
_COMMAND_SECONDS = 30
_PYTHON = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?P<level>[A-Z]+) (?P<text>.*)")  # see ``log_to_stderr``
_JVM = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?P<level>[A-Z]+) (?P<text>.*)")
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRITICAL": logging.CRITICAL,
    "FATAL": logging.CRITICAL,
}


class SubmitProcess:
    """A running spark-submit.

    Args:
        command: its command line.
        environment: its variables, over those of this process without Airflow's settings, which hold secrets.
        on_line: called with each line of its output, before the line is logged.
        own_session: whether it gets a session of its own, which signals to this process's group do not reach.
        keeps: file descriptors that it inherits, such as the lock of a folder that it uses.

    Raises AirflowFailException if there is no such program: another try would find none either.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        *,
        own_session: bool = False,
        keeps: Sequence[int] = (),
    ) -> None:
        self._on_line = on_line
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._recent: deque[str] = deque(maxlen=_LAST_LINES_OF_ERROR)
        self._level = logging.INFO
        log.info("spark-submit: %s", masked(command))
        try:
            self._process = subprocess.Popen(
                list(command),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**for_connectors(os.environ), **environment},
                start_new_session=own_session,
                pass_fds=keeps,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise AirflowFailException(
                f"Cannot start {command[0]}: {error.strerror}. It comes with PySpark: run 'pip install pyspark' (not "
                "pyspark-client) where the tasks run, or name another program in the Spark connection (spark-binary)."
            ) from None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, negative if a signal ended it; None while it runs."""
        return self._process.poll()

    @property
    def error(self) -> str | None:
        """Return the last error in the output, without secrets; None if there is none."""
        found = last_error(list(self._recent))
        return None if found is None else masked(found.text)

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        """Log the output until the end; return the exit code.

        An exception that Airflow raises in a task, such as that of its execution_timeout, interrupts the wait at once. Another
        call then goes on with it.
        """
        try:
            for line in self._process.stdout or ():
                self._read(line.strip())
        except Exception:
            self._process.communicate()  # what reads the lines has failed: the task must not end before its driver
            raise
        self._process.communicate()
        return self._process.returncode

    def failure(self, why: str) -> AirflowException:
        """Return the error of a spark-submit that has failed, with the last lines of its output."""
        lines = "\n".join(masked(line) for line in self._last)
        shown = f"\nIts last lines:\n{lines}" if lines else ""
        return AirflowException(f"spark-submit failed: {why}.{shown}")

    def _read(self, line: str) -> None:
        self._on_line(line)
        if self._last.maxlen == _LAST_LINES and _ERROR_BEGINS.search(line):
            self._last = deque(maxlen=_LAST_LINES_OF_ERROR)  # the whole trace, without what was logged before
        self._last.append(line)
        self._recent.append(line)
        self._level, text = driver_line(line, self._level)
        log.log(self._level, "%s", text)


def run_afterwards(commands: Sequence[str]) -> None:
    """Run an operator's ``post_submit_commands``. A failure is logged as a warning."""
    for command in commands:
        try:
            done = subprocess.run(
                shlex.split(command), capture_output=True, text=True, check=False, timeout=_COMMAND_SECONDS, errors="replace"
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            log.warning("post_submit_commands: %s: %s", masked(command), error)
            continue
        if done.returncode:
            output = masked((done.stdout + done.stderr)[-2000:])
            log.warning("post_submit_commands: %s ended with exit code %d\n%s", masked(command), done.returncode, output)


class DriverLine(NamedTuple):
    """A line without its time and level, which the log that it is written to has too."""

    level: int
    text: str


def driver_line(line: str, before: int) -> DriverLine:
    """Return a line's level and text. One without a level, such as of a trace, has that of the line ``before`` it."""
    found = _PYTHON.fullmatch(line) or _JVM.fullmatch(line)
    if found is None or found["level"] not in _LEVELS:
        return DriverLine(before, line)
    return DriverLine(_LEVELS[found["level"]], found["text"])
