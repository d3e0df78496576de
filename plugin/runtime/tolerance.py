"""What happens to a record that cannot be transformed or converted: ``errors.*``."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sluiceway.errors import ConfigError, ConnectError

log = logging.getLogger(__name__)

_TOLERANCE = "errors.tolerance"
_NOT_YET = {"errors.deadletterqueue.topic.name": "", "errors.retry.timeout": "0"}


class Tolerance:
    """Fails the task at the first bad record, or, with ``errors.tolerance=all``, skips bad records and counts them."""

    def __init__(self, config: Mapping[str, str]) -> None:
        for key, harmless in _NOT_YET.items():
            value = config.get(key, harmless).strip()
            if value not in (harmless, ""):
                raise ConfigError(key, value, "this is not supported yet; remove it from the config")
        self.skipped = 0
        self._skip = config.get(_TOLERANCE, "none").strip().lower() == "all"

    def refuse(self, what: str, error: Exception) -> None:
        """Take note of a bad record; ``what`` says which and what failed. Raises ConnectError unless it may be skipped."""
        if not self._skip:
            raise ConnectError(f"Tolerance exceeded in error handler: {what}: {error}") from error
        self.skipped += 1
        log.error("Skipped a record (%d skipped so far): %s: %s", self.skipped, what, error)
