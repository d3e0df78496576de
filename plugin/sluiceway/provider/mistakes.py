"""Tells mistakes from failures: a task with a mistake in its DAG, config, or connection fails at once, without its retries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from sluiceway.errors import BadRequestError, ConfigError, ConnectError, InvalidConfigError
from sluiceway.herder.plugin_classes import described
from sluiceway.provider.compat import AirflowException, AirflowFailException

_Method = TypeVar("_Method", bound=Callable[..., Any])


def is_mistake(error: BaseException) -> bool:
    """Return whether an error stays until somebody changes something."""
    if isinstance(error, InvalidConfigError):
        return not error.temporary
    return isinstance(error, (BadRequestError, ConfigError))


def task_error(subject: str, error: ConnectError) -> AirflowException:
    """Return the error with which a task fails; Airflow retries the task unless the error is a mistake."""
    kind = AirflowFailException if is_mistake(error) else AirflowException
    return kind(f"{subject}: {described(error)}")


def mistakes_are_final(method: _Method) -> _Method:
    """Make a mistake that an operator's method raises fail the task without a retry.

    Once a driver has run in this task, its settings were right. What cannot be read afterwards, while Airflow restarts for
    example, is retried.
    """

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except (BadRequestError, ConfigError) as error:
            if getattr(self, "has_run", False):
                raise
            raise task_error(f"Task {self.task_id}", error) from error

    return call  # type: ignore[return-value]
