"""The processes of a task that have dlt: their start, their output, and their end. For both sides of each.

dlt keeps its configuration and contexts in objects of the process. So no two connectors share one, and no secret of one is seen
by another.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sluiceway.child_processes import die_with_parent
from sluiceway.config.environment import for_configs

_BUFFER = 1 << 20
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_CAUSES = 20
_REFUSED = re.compile("authentication|password|access denied|login|does not exist|unknown database", re.IGNORECASE)


def child_environment() -> dict[str, str]:
    """Return the variables of a child process. It finds the modules that this one finds."""
    paths = [str(Path(each).absolute()) for each in sys.path if each]
    environment = {name: value for name, value in for_configs(os.environ).items() if not name.startswith("SPARK_")}
    return environment | {
        "PYTHONPATH": os.pathsep.join(paths),
        # dlt would import Airflow (seconds of CPU time, and a database in AIRFLOW_HOME), and send how it is used.
        "PROVIDERS__ENABLE_AIRFLOW_SECRETS": "false",
        "RUNTIME__DLTHUB_TELEMETRY": "false",
    }


def started_child(module: str) -> subprocess.Popen[bytes]:
    """Start a module of this package as a child process with pipes. The kernel kills it with the thread that calls this."""
    return subprocess.Popen(
        die_with_parent([sys.executable, "-m", module]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=_BUFFER,
        env=child_environment(),
        start_new_session=True,  # a signal to the process group is for the task, which ends the child
    )


def kill_child(process: subprocess.Popen[bytes]) -> None:
    """Kill a child, and what it has started. Thread-safe."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def close_child(process: subprocess.Popen[bytes]) -> None:
    """Kill a child, and wait until it has ended."""
    kill_child(process)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]  # both are pipes


def child_output() -> BinaryIO:
    """Return the child's standard output for its answers. What others print goes to the log."""
    output = os.fdopen(os.dup(1), "wb", buffering=_BUFFER)
    os.dup2(2, 1)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s dlt: [%(name)s] %(message)s")
    return output


def is_transient(error: BaseException) -> bool:
    """Return whether an error, or one that it comes from, says that a system cannot be reached now, or is busy."""
    return any(_passes(each) for each in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    for _ in range(_CAUSES):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


def _passes(error: BaseException) -> bool:
    """Return whether an error says that a system cannot be reached now, or is busy. So do errors of requests and of databases."""
    response = getattr(error, "response", None)
    if response is not None and getattr(response, "status_code", None) in _BUSY:
        return True
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    names = {each.__name__ for each in type(error).__mro__}
    module = type(error).__module__.partition(".")[0]
    if module in {"requests", "httpx", "urllib3"}:
        return bool(names & {"ConnectionError", "Timeout", "TransportError", "ChunkedEncodingError"})
    if module == "sqlalchemy" and getattr(error, "connection_invalidated", False):
        return True
    return "OperationalError" in names and not _REFUSED.search(str(error))  # of PEP 249, which drivers also raise for logins
