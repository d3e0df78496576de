"""What the command's exit code tells a script."""

from __future__ import annotations

from sluiceway.errors import ConnectError, InvalidConfigError

DONE = 0
FAILED = 1
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
    """Return the exit code for an error."""
    if isinstance(error, InvalidConfigError):
        return REFUSED
    # Looked up by attribute, so that an error does not cost the import of the HTTP client.
    return _OF_STATUS.get(getattr(error, "status", -1), FAILED)
