"""Starts the process of a preview or a call, reads its events, and ends it when its time is over. Runs in the REST server."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Protocol

from sluiceway.errors import ConflictError
from sluiceway.preview.isolation import variables
from sluiceway.preview.request import Call, Event, PreviewRequest

_START_SECONDS = 60.0  # until the process has imported what it needs, on a busy machine
_MOST_AT_ONCE = 4
_TURN_SECONDS = 5.0
_LARGEST_ANSWER = 16 << 20
_LOG_BYTES = 8192
_CHUNK = 1 << 16

_turns = threading.BoundedSemaphore(_MOST_AT_ONCE)


class Receiver(Protocol):
    """The answer to which a process's events are added (``Answer``, ``CallAnswer``)."""

    ready: bool
    ended: bool

    def add(self, event: Event) -> None: ...

    def stopped(self, seconds: float) -> None: ...

    def too_large(self) -> None: ...

    def crashed(self, code: int, log: str, /) -> None: ...


def run_preview(request: PreviewRequest | Call, answer: Receiver) -> None:
    """Run a preview or a call and add its events to the answer. Blocks until it has ended.

    Raises ConflictError if too many run.
    """
    if not _turns.acquire(timeout=_TURN_SECONDS):
        raise ConflictError(f"{_MOST_AT_ONCE} previews run already, or requests like them. Try again in some seconds.")
    try:
        with _process(request) as process:
            _Exchange(process, request, answer).run()
    finally:
        _turns.release()


@contextlib.contextmanager
def _process(request: PreviewRequest | Call) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a session of its own, with a folder for temporary files; at the end, kill the session."""
    with tempfile.TemporaryDirectory(prefix="sluiceway-preview-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "sluiceway.preview.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_environment(request, folder), "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"},
            cwd=folder if request.isolated else None,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def _environment(request: PreviewRequest | Call, folder: str) -> Mapping[str, str]:
    if request.isolated:
        return {**variables(request.worker.raw), "TMPDIR": folder}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}


class _Exchange:
    """Sends the request, and reads the process's events and the end of its log, until it ends or its time is over."""

    def __init__(self, process: subprocess.Popen[bytes], request: PreviewRequest | Call, answer: Receiver) -> None:
        self._process = process
        self._seconds = request.limits.seconds
        self._unsent = memoryview(pickle.dumps(request))
        self._answer = answer
        self._deadline = time.monotonic() + _START_SECONDS
        self._line: list[bytes] = []
        self._size = 0
        self._log = b""

    def run(self) -> None:
        answer, process = self._answer, self._process
        with selectors.DefaultSelector() as selector:
            for stream, event, handle in (
                (process.stdin, selectors.EVENT_WRITE, self._send),
                (process.stdout, selectors.EVENT_READ, self._take_events),
                (process.stderr, selectors.EVENT_READ, self._take_log),
            ):
                assert stream is not None  # noqa: S101 (a pipe)
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, event, (stream, handle))
            while selector.get_map() and not answer.ended:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    answer.stopped(self._seconds if answer.ready else _START_SECONDS)
                    return
                for key, _ in selector.select(left):
                    stream, handle = key.data
                    if not handle(key.fd):
                        selector.unregister(stream)
                        stream.close()
                if self._size > _LARGEST_ANSWER:
                    answer.too_large()
                    return
        if not answer.ended:
            answer.crashed(self._process.wait(), self._log.decode(errors="replace"))

    def _send(self, pipe: int) -> bool:
        """Send a part of the request; return False once it is sent, or nobody reads it."""
        with contextlib.suppress(BrokenPipeError):
            self._unsent = self._unsent[os.write(pipe, self._unsent[:_CHUNK]) :]
            if self._unsent:
                return True
        return False

    def _take_events(self, pipe: int) -> bool:
        data = os.read(pipe, _CHUNK)
        self._size += len(data)
        *ended, rest = data.split(b"\n")
        for end in ended:
            line = b"".join((*self._line, end))
            self._line.clear()
            was_ready = self._answer.ready
            self._answer.add(json.loads(line))
            if self._answer.ready and not was_ready:
                self._deadline = time.monotonic() + self._seconds
        self._line.append(rest)
        return bool(data)

    def _take_log(self, pipe: int) -> bool:
        data = os.read(pipe, _CHUNK)
        self._log = (self._log + data)[-_LOG_BYTES:]
        return bool(data)
