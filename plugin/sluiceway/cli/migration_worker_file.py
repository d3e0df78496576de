"""Writes the worker file of a Sluiceway that connectors of a Kafka Connect cluster move to, from that cluster's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sluiceway.config.application import DEFAULT
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import MIGRATE_WITH
from sluiceway.errors import ConfigError

_OWN = ("group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic")
_SUFFIX = "-sluiceway"
# Where Kafka Connect's own REST API is. 'sluiceway up' takes port 8083, or one that is free.
_ADDRESSES = ("listeners", "admin.listeners", "rest.host.name", "rest.port")
_ADVERTISED = "rest.advertised."
_SHARED = "small"
_FEW = 4  # connectors that may have an application each


def write_worker_file(given: Path, written: Path, source: str, connectors: int) -> list[str]:
    """Write the file, which others cannot read, and return lines that say what differs and what to do next.

    Args:
        given: the worker file of Kafka Connect.
        source: the address of its REST API, for the page.
        connectors: their number; many share one application.

    Raises ConfigError if the file exists, or ``given`` is not that of a distributed worker.
    """
    theirs = read_properties(given)
    if missing := [key for key in _OWN if not theirs.get(key)]:
        raise ConfigError(f"{given} is not the file of a distributed worker: it has no {', '.join(missing)}.")
    ours = worker_properties(theirs, source, connectors)
    _write(written, ours)
    lines = [f"  {key}={ours[key]}" for key in ours if ours[key] != theirs.get(key)]
    lines += [f"  without {key}" for key in theirs if key not in ours]
    home = written.resolve().parent / "sluiceway-home"
    return [
        f"Wrote {written}. It is {given} but for:",
        *lines,
        f"Start it with: SLUICEWAY_HOME={home} sluiceway up {written}",
    ]


def worker_properties(theirs: Mapping[str, str], source: str, connectors: int) -> dict[str, str]:
    """Return the properties of a Sluiceway beside a Kafka Connect cluster: another group, other topics, and all else the same."""
    kept = {key: value for key, value in theirs.items() if key not in _ADDRESSES and not key.startswith(_ADVERTISED)}
    ours = {**kept, **{key: f"{theirs[key]}{_SUFFIX}" for key in _OWN}, MIGRATE_WITH: source}
    return ours if connectors <= _FEW else {DEFAULT: _SHARED, **ours}


def _write(path: Path, properties: Mapping[str, str]) -> None:
    import javaproperties

    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="latin-1") as file:
            javaproperties.dump(properties, file, timestamp=False)
    except FileExistsError as error:
        raise ConfigError(f"{path} exists. Name another file, or remove it.") from error
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from error
