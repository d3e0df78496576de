"""The exit codes of the processes: of a driver, of standalone mode and of the ``sluiceway`` command."""

from __future__ import annotations

from sluiceway.errors import ConnectError, InvalidConfigError

DONE = 0
"""A driver: drained, because the connector was paused, stopped or deleted, or its micro-batch is done."""
FAILED = 1
FENCED = 3
"""Only a driver: a newer one has taken over."""

# The other codes are only the command's; standalone mode ends with REFUSED too.
USAGE = 2
REFUSED = 3
"""The server refuses what was asked, such as a config with errors; also Kafka's own code for a refused connector file."""
NOT_FOUND = 4
UNREACHABLE = 5
NOT_ALLOWED = 6
CONFLICT = 7
DIFFERENT = 8
"""``diff`` found something that ``apply`` would change."""
INTERRUPTED = 130

_OF_STATUS = {0: UNREACHABLE, 400: REFUSED, 401: NOT_ALLOWED, 403: NOT_ALLOWED, 404: NOT_FOUND, 409: CONFLICT, 422: REFUSED}


def exit_code(error: ConnectError) -> int:
    """Return the command's exit code for an error."""
    if isinstance(error, InvalidConfigError):
        return REFUSED
    # Looked up by attribute, so that an error does not cost the import of the HTTP client.
    return _OF_STATUS.get(getattr(error, "status", -1), FAILED)
