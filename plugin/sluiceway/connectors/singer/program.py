"""Finds a plugin's program, or installs it, and writes its files so that only this user can read them. Runs on executors."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from sluiceway.connectors.singer.plugin import Plugin
from sluiceway.singer_plugins.cached import cached_program
from sluiceway.singer_plugins.programs import find_program

log = logging.getLogger(__name__)


def command_of(plugin: Plugin, *, install: bool = True) -> list[str]:
    """Return the command of a plugin's program, and install its requirements first, unless this machine has them.

    Takes minutes where pip builds packages. Raises ConnectError, such as NotFoundError.
    """
    if plugin.requirements and install:
        return cached_program(plugin.program, plugin.requirements, plugin.python, lambda line: log.info("%s", line))
    return find_program(plugin.program)


def write_private(path: Path, content: Any) -> str:
    """Write a text, or anything else as JSON, to a file of this user only, and return its path."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return str(path)
