"""Exit codes of drivers, standalone mode and the ``sluiceway`` command."""

from __future__ import annotations

from sluiceway.errors import ConnectError, InvalidConfigError, NotFoundError

DONE = 0
"""Success. A driver has drained: its connector was paused, stopped or deleted, its micro-batch ended, or SIGTERM arrived."""
FAILED = 1
FENCED = 3
"""Drivers only: another driver has taken the connector over."""
APPLICATION_ENDED = 10
"""Drivers only: the Spark application was ended from outside or gets no executors any more. Start another driver."""

# The following codes are the command's. Standalone mode uses REFUSED too.
USAGE = 2
REFUSED = 3
"""The server refused the request, such as a config with errors. Kafka uses this code for a refused connector file too."""
NOT_FOUND = 4
UNREACHABLE = 5
NOT_ALLOWED = 6
CONFLICT = 7
DIFFERENT = 8
"""``diff`` found a change that ``apply`` would make."""
INTERRUPTED = 130

_OF_STATUS = {0: UNREACHABLE, 400: REFUSED, 401: NOT_ALLOWED, 403: NOT_ALLOWED, 404: NOT_FOUND, 409: CONFLICT, 422: REFUSED}


def exit_code(error: ConnectError) -> int:
    """Return the command's exit code for an error."""
    if isinstance(error, InvalidConfigError):
        return REFUSED
    if isinstance(error, NotFoundError):
        return NOT_FOUND
    # By attribute instead of class, because importing the HTTP client for its error class would slow each command.
    return _OF_STATUS.get(getattr(error, "status", -1), FAILED)
