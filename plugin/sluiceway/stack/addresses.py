"""Records the addresses of the local stack in its state folder, so that other commands find it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sluiceway.folders import write_atomically
from sluiceway.stack.process import BackgroundProcess

REST = "rest"
"""The name of the REST API's process."""


@dataclass(frozen=True)
class Addresses:
    """Addresses and ports of a running stack."""

    rest: str
    airflow: str
    bootstrap: str
    worker_file: str
    ports: Mapping[str, int] = field(default_factory=dict)


def record(folder: Path, addresses: Addresses) -> None:
    """Write the addresses of the stack of a state folder."""
    write_atomically(_file(folder), json.dumps(asdict(addresses), indent=1), mode=0o600)


def recorded(folder: Path) -> Addresses | None:
    """Return the addresses that a stack had when it was started last, or None."""
    try:
        return Addresses(**json.loads(_file(folder).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def running_rest(folder: Path) -> str | None:
    """Return the REST API's URL if it runs, or None. Another program may have the port of one that does not."""
    addresses = recorded(folder)
    return addresses.rest if addresses and BackgroundProcess(REST, [], folder).is_running() else None


def _file(folder: Path) -> Path:
    return folder / "stack.json"
