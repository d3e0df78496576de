"""Restricts config providers that read files to the paths in ``allowed.paths``."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from sluiceway.config.parsing import parse_list
from sluiceway.errors import ConfigError

log = logging.getLogger(__name__)

ALLOWED_PATHS = "allowed.paths"


class AllowedPaths:
    """The allowed files and folders including their contents. Without ``allowed.paths`` every path is allowed."""

    def __init__(self, text: str | None) -> None:
        self._paths = [_checked(each) for each in parse_list(text)] if (text or "").strip() else None

    def permitted(self, path: str) -> Path | None:
        """Return the path with ``..`` resolved if it is allowed. Otherwise log an error and return None."""
        plain = Path(os.path.normpath(path))
        if self._paths is None:
            return Path(path)
        if any(plain == allowed or allowed in plain.parents for allowed in self._paths):
            return plain
        log.error("The path %s is not within the allowed paths: %s=%s", path, ALLOWED_PATHS, ",".join(map(str, self._paths)))
        return None


def _checked(text: str) -> Path:
    path = Path(os.path.normpath(text))
    if not path.is_absolute():
        raise ConfigError(f"Path {path} is not absolute")
    if not path.exists():
        raise ConfigError(f"Path {path} does not exist")
    return path
