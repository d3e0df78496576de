"""Turns Arrow's errors about values into NotColumnar, with the field that has the value."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from sluiceway.api.columns import NotColumnar

T = TypeVar("T")

VALUE_ERRORS = (pa.ArrowInvalid, pa.ArrowCapacityError)
"""What Arrow raises for a value: it does not fit a type, or values have more than 2 GB. Other errors are those of a program."""


@contextlib.contextmanager
def refused_values(what: object) -> Iterator[None]:
    """Raise NotColumnar for a value that Arrow refuses; ``what`` says of what it is one."""
    try:
        yield
    except VALUE_ERRORS as error:
        raise NotColumnar(f"{what}: {error}") from error


def in_field(name: str, function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function of a field's values. NotColumnar, also for a value that Arrow refuses, names the field."""
    try:
        return function(*arguments)
    except NotColumnar as error:
        raise error.inside(name)  # noqa: B904 (the same error)
    except VALUE_ERRORS as error:
        raise NotColumnar(str(error), field=name) from error
