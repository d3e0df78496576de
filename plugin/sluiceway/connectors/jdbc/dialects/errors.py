"""Classifies errors of database drivers. No I/O.

Each dialect has one table of its error codes, which source and sink share.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping

from sluiceway.errors import ConnectError, DataError, RetriableError

_DRIVER_ERRORS = {"DatabaseError", "InterfaceError"}
_RECORD_ERRORS = {"DataError", "IntegrityError"}


class ErrorKind(enum.Enum):
    """The cause of an error, by which source and sink decide whether to retry."""

    AGAIN = "the database rolled the transaction back and may accept it later"
    UNREACHABLE = "the connection is lost"
    CHANGED = "a table or column is missing"
    RECORD = "a value cannot be written"
    DENIED = "the statement is wrong or not allowed"
    OTHER = "anything else"


def connect_error_kind(error: BaseException) -> ErrorKind | None:
    """Return the kind of an error that did not come from a driver, None if it may have."""
    if isinstance(error, RetriableError):
        return ErrorKind.UNREACHABLE
    if isinstance(error, ConnectError):
        return ErrorKind.RECORD if isinstance(error, DataError) else ErrorKind.OTHER
    return None


def kind_by_class(error: BaseException) -> ErrorKind:
    """Return the kind of a driver's error without a code, by the names that PEP 249 gives to its classes."""
    names = _class_names(error)
    if not names & _DRIVER_ERRORS:
        if isinstance(error, OSError):
            return ErrorKind.UNREACHABLE
        return ErrorKind.RECORD if isinstance(error, (ValueError, TypeError, ArithmeticError)) else ErrorKind.OTHER
    if names & _RECORD_ERRORS:
        return ErrorKind.RECORD
    if names & {"OperationalError", "InterfaceError"}:
        return ErrorKind.UNREACHABLE
    # The driver does not know how to write one of the values.
    return ErrorKind.RECORD if names & {"ProgrammingError", "NotSupportedError"} else ErrorKind.OTHER


def kind_by_number(number: int, table: Mapping[ErrorKind, frozenset[int]], is_client: Callable[[int], bool]) -> ErrorKind:
    """Return the kind of an error by its number; of numbers that the table lacks, by whether the client gave it.

    ``is_client`` returns whether a number is the client library's and not the server's.
    """
    for kind, listed in table.items():
        if number in listed:
            return kind
    # The server has understood the statement, and will not accept it later.
    return ErrorKind.UNREACHABLE if is_client(number) else ErrorKind.DENIED


def numbered_kind(error: BaseException, kind_of: Callable[[int], ErrorKind]) -> ErrorKind:
    """Return the kind of a driver's error by its number, which drivers of MySQL and SQL Server give; of others, by its class."""
    number = error_number(error)
    if number is None:
        return kind_by_class(error)
    kind = kind_of(number)
    return ErrorKind.RECORD if kind is ErrorKind.DENIED and _class_names(error) & _RECORD_ERRORS else kind


def error_number(error: BaseException) -> int | None:
    """Return the number that MySQL's and SQL Server's drivers put in front of the message; None for other errors."""
    if not error.args or not isinstance(error.args[0], int) or not _class_names(error) & _DRIVER_ERRORS:
        return None
    return error.args[0]


def _class_names(error: BaseException) -> set[str]:
    return {each.__name__ for each in type(error).__mro__}


def numbers(text: str) -> frozenset[int]:
    """Return the numbers of a text."""
    return frozenset(map(int, text.split()))


def contains(text: str, parts: Iterable[str]) -> bool:
    """Return whether a text contains one of the parts."""
    return any(part in text for part in parts)
