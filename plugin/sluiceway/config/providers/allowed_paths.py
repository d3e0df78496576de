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
        try:
            self.check(path)
        except ConfigError as error:
            log.error("%s", error)
            return None
        return Path(path) if self._paths is None else Path(os.path.normpath(path))

    def check(self, path: str) -> None:
        """Raise ConfigError if the path is not allowed."""
        plain = Path(os.path.normpath(path))
        if self._paths is not None and not any(plain == each or each in plain.parents for each in self._paths):
            raise ConfigError(
                f"The path {path} is not within the allowed paths: {ALLOWED_PATHS}={','.join(map(str, self._paths))}"
            )


def _checked(text: str) -> Path:
    path = Path(os.path.normpath(text))
    if not path.is_absolute():
        raise ConfigError(f"Path {path} is not absolute")
    if not path.exists():
        raise ConfigError(f"Path {path} does not exist")
    return path
