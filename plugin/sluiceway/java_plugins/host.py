"""Starts, watches and ends a Java process of plugins, and calls the objects in it.

The process reads requests from its standard input and ends when that is closed, so it ends with the process that started it.
Configs, which may hold secrets, reach it through this pipe only. Its log goes to the standard error it inherits.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from sluiceway.child_processes import die_with_parent, enlarge_pipe
from sluiceway.config.environment import for_configs
from sluiceway.errors import ConnectError, java_text_of
from sluiceway.folders import scratch_folder
from sluiceway.java_plugins.class_archive import ClassArchive
from sluiceway.java_plugins.errors import JavaProcessError, java_error, memory_advice
from sluiceway.java_plugins.frames import ANSWER, ERROR, REQUEST, Frame, encode, read_frame
from sluiceway.java_plugins.helper_jar import helper_jar
from sluiceway.java_plugins.jvm_options import jvm_options
from sluiceway.java_runtime import find_java

log = logging.getLogger(__name__)

MAIN_CLASS = "org.sluiceway.plugins.Host"

_STDERR = 2
_BUFFER = 1 << 16
# Between two calls of a request's `watch`: a share of the time waited so far, so that it is neither called late nor very often.
_WAIT_SECONDS = (0.001, 0.2)
_WAIT_SHARE = 0.25
_END_SECONDS = 5.0
_CRASH_LINES = 60
_OUT_OF_MEMORY = 53  # as in Host.java

Handler = Callable[[str, Any], object]
"""Answers a request of a Java object, with a method and its arguments, on the host's thread. Must not call the host."""

Watch = Callable[[float], None]
"""Called while an answer is awaited, with the seconds waited so far; raises to end the wait."""


@dataclass(frozen=True, slots=True)
class HostOptions:
    """The options of a Java process.

    ``name`` appears in messages. ``java_opts`` are options for the JVM after the default ones. ``class_path`` has Connect's
    jars; the jar of the helper classes is added.
    """

    name: str
    class_path: tuple[Path, ...]
    java_opts: str = ""


class JavaHost:
    """A Java process of plugins. Starts with the constructor, which raises JavaProcessError. Thread-safe."""

    def __init__(self, options: HostOptions) -> None:
        self._options = options
        self._pending: dict[int, Future[Frame]] = {}
        self._handlers: dict[int, Handler] = {}
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._requests = itertools.count(1)
        self._objects = itertools.count(1)
        self._ended: JavaProcessError | None = None
        self._closing = False
        self.on_death: Callable[[JavaProcessError], None] | None = None
        """Called on the host's thread when the process has ended unexpectedly."""
        started: Future[subprocess.Popen[bytes]] = Future()
        # The thread lives as long as the process: the kernel kills the process when the thread ends.
        self._thread = threading.Thread(target=self._run, args=(started,), name=f"java-{options.name}", daemon=True)
        self._thread.start()
        self._process = started.result()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._ended is None and not self._closing

    def new(
        self,
        kind: str,
        args: object,
        *,
        thread: str = "",
        context: str = "",
        handler: Handler | None = None,
        watch: Callable[[JavaObject], None] | None = None,
    ) -> JavaObject:
        """Create a Java object with a thread of its own. Raises JavaError, JavaProcessError and what ``watch`` raises.

        ``thread`` is the thread's name, ``context`` Connect's prefix of its log lines, such as ``[name|task-0] ``. ``watch`` is
        called with the object while its constructor lasts.
        """
        number = next(self._objects)
        created = JavaObject(self, number)
        if handler is not None:
            self._handlers[number] = handler
        extra = {"kind": kind, "thread": thread or f"{self._options.name}-{number}", "context": context}
        try:
            self._request(number, "new", args, b"", watch and (lambda _: watch(created)), extra)
        except BaseException:
            self._handlers.pop(number, None)
            raise
        return created

    def set_levels(self, levels: Mapping[str, str]) -> None:
        """Set the levels of Java loggers, by name; "root" is the root logger. Does not wait for them."""
        self._send(0, "levels", {"" if name == "root" else name: level for name, level in levels.items()})

    def kill(self) -> None:
        """End the process at once; requests that wait raise JavaProcessError."""
        self._process.kill()

    def close(self) -> None:
        """End the process and wait until it has ended. Does not stop the objects. Never raises; may be called again."""
        self._closing = True
        with contextlib.suppress(OSError):
            cast(BinaryIO, self._process.stdin).close()
        self._thread.join(_END_SECONDS)
        if self._thread.is_alive():
            self.kill()
            self._thread.join(_END_SECONDS)

    def _request(
        self, number: int, method: str, args: object, body: bytes, watch: Watch | None, extra: Mapping[str, object] | None = None
    ) -> Frame:
        return _wait(self._submit(number, method, args, body, extra), watch)

    def _submit(
        self, number: int, method: str, args: object, body: bytes = b"", extra: Mapping[str, object] | None = None
    ) -> Future[Frame]:
        request = next(self._requests)
        future: Future[Frame] = Future()
        with self._lock:
            if self._ended is not None:
                raise JavaProcessError(str(self._ended), self._ended.java_trace)
            self._pending[request] = future
        with contextlib.suppress(OSError):  # the process has ended: its reader fails the request with the cause
            self._write(encode(REQUEST, request, {"object": number, "method": method, "args": args, **(extra or {})}, body))
        return future

    def _send(self, number: int, method: str, args: object) -> None:
        """Send a request whose answer is ignored. Does nothing after the process ended."""
        with contextlib.suppress(OSError, ValueError):
            self._write(encode(REQUEST, next(self._requests), {"object": number, "method": method, "args": args}))

    def _write(self, data: bytes) -> None:
        with self._write_lock:
            stdin = cast(BinaryIO, self._process.stdin)
            if stdin.closed:
                raise BrokenPipeError
            stdin.write(data)
            stdin.flush()

    # On the host's thread.

    def _run(self, started: Future[subprocess.Popen[bytes]]) -> None:
        with scratch_folder("java") as folder:
            crash_file = folder / "hs_err.log"
            reading, writing = os.pipe()
            enlarge_pipe(writing)
            with os.fdopen(reading, "rb", buffering=_BUFFER) as frames:
                try:
                    # Frames have a pipe of their own, because the JVM and native code may write to standard output.
                    command, archive = _command(self._options, crash_file, writing)
                    process = subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=_STDERR,
                        bufsize=_BUFFER,
                        pass_fds=[writing],
                        start_new_session=True,  # a signal to the process group is for Python, which stops the plugins first
                        env=for_configs(os.environ),  # configs are all that a plugin is given
                    )
                except (OSError, ConnectError) as error:
                    started.set_exception(error)
                    return
                finally:
                    os.close(writing)
                enlarge_pipe(cast(BinaryIO, process.stdin).fileno())
                started.set_result(process)
                while (frame := read_frame(frames)) is not None:
                    if frame.kind == REQUEST:
                        self._serve(process, frame)
                    elif (future := self._pending.pop(frame.id, None)) is not None:
                        future.set_result(frame)
            self._end(process, crash_file)
            archive.close(process.returncode)

    def _serve(self, process: subprocess.Popen[bytes], frame: Frame) -> None:
        handler = self._handlers.get(frame.header["object"])
        try:
            if handler is None:
                raise ConnectError("The plugin has no such service here.")
            answer = encode(ANSWER, frame.id, handler(frame.header["method"], frame.header["args"]))
        except Exception as error:  # noqa: BLE001 (the Java side raises it in the plugin)
            answer = encode(ERROR, frame.id, {"message": java_text_of(error)})
        with contextlib.suppress(OSError):  # the process has ended
            self._write(answer)

    def _end(self, process: subprocess.Popen[bytes], crash_file: Path) -> None:
        try:
            code = process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it has closed its output but goes on
            process.kill()
            code = process.wait()
        if self._closing:
            ended = JavaProcessError(f"The Java process of {self._options.name} was stopped.")
        else:
            ended = _death(self._options.name, code, crash_file)
            log.error("%s", ended)
        with self._lock:
            self._ended = ended
            pending, self._pending = self._pending, {}
        for future in pending.values():
            future.set_exception(JavaProcessError(str(ended), ended.java_trace))
        if self.on_death is not None and not self._closing:
            self.on_death(ended)


class JavaObject:
    """An object in a Java process. Its calls are carried out one after the other, on its own Java thread."""

    def __init__(self, host: JavaHost, number: int) -> None:
        self._host = host
        self._number = number

    @property
    def host(self) -> JavaHost:
        return self._host

    @property
    def number(self) -> int:
        """The number by which other objects in the process find this one."""
        return self._number

    def call(self, method: str, args: object = None, body: bytes = b"", *, watch: Watch | None = None) -> Any:
        """Call a method and return its result, as JSON types. Raises JavaError, JavaProcessError and what ``watch`` raises."""
        return self._host._request(self._number, method, args, body, watch).header

    def call_for_bytes(
        self, method: str, args: object = None, body: bytes = b"", *, watch: Watch | None = None
    ) -> tuple[Any, bytes]:
        """Call a method like ``call`` and return its result with the bytes that belong to it."""
        frame = self._host._request(self._number, method, args, body, watch)
        return frame.header, frame.body

    def begin(self, method: str, args: object = None, body: bytes = b"") -> Future[Frame]:
        """Begin a call and return its future, for ``finish``. Raises JavaProcessError."""
        return self._host._submit(self._number, method, args, body)

    @staticmethod
    def finish(call: Future[Frame], *, watch: Watch | None = None) -> Any:
        """Wait for a call that has begun and return its result like ``call``."""
        return _wait(call, watch).header

    def interrupt(self) -> None:
        """Interrupt the object's Java thread, which ends most waits there with an exception.

        Does not wait for an answer, which a process that hangs as a whole never gives.
        """
        self._host._send(self._number, "interrupt", None)

    def delete(self) -> None:
        """End the object's thread. The object itself must have been stopped or closed. Does nothing after the process ended."""
        with contextlib.suppress(JavaProcessError):
            self.call("delete")
        self._host._handlers.pop(self._number, None)


def _wait(future: Future[Frame], watch: Watch | None) -> Frame:
    frame = future.result() if watch is None else _watched(future, watch)
    if frame.kind == ERROR:
        raise java_error(frame.header)
    return frame


def _watched(future: Future[Frame], watch: Watch) -> Frame:
    started, waited = time.monotonic(), 0.0
    while True:
        try:
            return future.result(min(max(waited * _WAIT_SHARE, _WAIT_SECONDS[0]), _WAIT_SECONDS[1]))
        except FutureTimeoutError:
            waited = time.monotonic() - started
            if not future.done():  # the answer may have come just now
                watch(waited)


def _command(options: HostOptions, crash_file: Path, writing: int) -> tuple[Sequence[str], ClassArchive]:
    """Return the command of a process that writes its frames to the file descriptor ``writing``, and its archive of classes."""
    java, jars = find_java(), (helper_jar(options.class_path), *options.class_path)
    archive = ClassArchive(java, jars, options.java_opts)
    jvm = [str(java.executable), *archive.options, f"-XX:ErrorFile={crash_file}", *jvm_options(options.java_opts)]
    command = [*jvm, "-cp", os.pathsep.join(map(str, jars)), MAIN_CLASS, f"/proc/self/fd/{writing}"]
    return die_with_parent(command), archive


def _death(name: str, code: int, crash_file: Path) -> JavaProcessError:
    how = f"exit code {code}"
    if code < 0:
        how = f"signal {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"signal {-code}"
    advice = "Its last messages are in this process's standard error."
    if code == _OUT_OF_MEMORY:
        advice = memory_advice("java.lang.OutOfMemoryError")
    elif code == -signal.SIGKILL:
        advice = "Somebody killed it, or the system had no memory left; sluiceway.java.opts sets its heap (-Xmx)."
    try:
        report = crash_file.read_text(errors="replace")
    except OSError:
        report = ""
    return JavaProcessError(f"The Java process of {name} ended unexpectedly with {how}. {advice}", _crash_summary(report))


def _crash_summary(report: str) -> str:
    """Return the cause and the frames from the JVM's crash report."""
    cause = [line for line in report.splitlines() if line.startswith("#") and line.strip("# ")]
    frames = re.search(r"^(?:Native frames|Java frames).*?(?=\n\n[A-Z])", report, re.MULTILINE | re.DOTALL)
    lines = [*cause, *(frames.group().splitlines() if frames else [])]
    return "\n".join(lines[:_CRASH_LINES])
