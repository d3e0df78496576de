"""Functions that tests call in an isolated process."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluiceway.config.variables import resolver
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError


def reach(config: Mapping[str, str], worker: WorkerConfig, files: list[str]) -> dict[str, Any]:
    """Return what the process reaches: variables, files, and the values of references."""
    return {
        "variables": dict(os.environ),
        "files": [file for file in files if _is_readable(file)],
        "resolved": resolver(worker).resolve(config),
        "worker": {key: value for key, value in worker.raw.items() if key.startswith("listeners.")},
    }


def _is_readable(file: str) -> bool:
    try:
        return bool(Path(file).read_bytes())
    except OSError:
        return False


def reject(config: Mapping[str, str], worker: WorkerConfig, kind: type[Exception], *arguments: str) -> None:
    """Raise an error with these arguments, and the value of ``password``."""
    raise kind(f"{arguments[0]} {resolver(worker).resolve(config)['password']}", *arguments[1:])


def end(_config: Mapping[str, str], _worker: WorkerConfig, how: str) -> None:
    """End the process, or hang."""
    if how == "crash":
        os._exit(3)
    if how == "hang":
        time.sleep(3600)
    raise ConnectError(f"does not end by {how}")


def refuse(config: Mapping[str, str], _worker: WorkerConfig) -> None:
    """Fail as a connector does that may not open a file."""
    raise ConnectError("Cannot read it.") from PermissionError(13, "Permission denied", config["file"])
