"""The processes of a task that have dlt: their environment, and their output. For both sides of each.

dlt keeps its configuration and contexts in objects of the process. So no two connectors share one, and no secret of one is seen
by another.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sluiceway.config.environment import for_configs

_PR_SET_PDEATHSIG = 1
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


def child_output(parent: int) -> BinaryIO:
    """Return the child's standard output for its answers; what others print goes to the log.

    The kernel kills this process with the thread that started it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os._exit(0)
    output = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
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
