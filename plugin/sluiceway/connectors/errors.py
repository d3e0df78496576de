"""The errors of the systems that connectors talk to. Their texts hold no secret."""

from __future__ import annotations

from sluiceway.errors import ConnectError


class UnreachableError(ConnectionError):
    """The system does not answer, or cannot do now what it is asked for: the same is tried again.

    ``pause`` has the seconds that it has asked for.
    """

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


class LoginError(ConnectError):
    """The system cannot be used with this login: it is refused, incomplete, or without a right. ``key`` is the key to look at."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key

    def __reduce__(self) -> tuple[type[LoginError], tuple[str, str]]:
        return type(self), (str(self), self.key)


class RefusedError(ConnectError):
    """The system refuses a request, which waiting does not change. ``code`` is its own for the reason."""

    def __init__(self, message: str, code: int | str = "") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[RefusedError], tuple[str, int | str]]:
        return type(self), (str(self), self.code)
