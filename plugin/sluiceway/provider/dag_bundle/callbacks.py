"""Imports the callback functions that a connector's config names. Runs where Airflow parses DAGs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sluiceway.errors import ConfigError


def callbacks(named: Mapping[str, Collection[str]], allowed: Collection[str]) -> dict[str, list[Callable[..., Any]]]:
    """Return an operator's callback arguments, such as ``on_failure_callback``.

    Args:
        named: by config key (``airflow.on.failure.callback``), the functions as ``module.function``.
        allowed: modules that may be named; their submodules are allowed too. A connector's config must not be able to call
            arbitrary code.

    Raises:
        ConfigError: a module is not allowed, or a function cannot be imported.
    """
    return {
        key.partition(".")[2].replace(".", "_"): [_function(key, each, allowed) for each in names] for key, names in named.items()
    }


def _function(key: str, name: str, allowed: Collection[str]) -> Callable[..., Any]:
    module, _, attribute = name.rpartition(".")
    if not any(module == each or module.startswith(f"{each}.") for each in allowed):
        raise ConfigError(key, name, "its module is not among those in Airflow's [sluiceway] callbacks")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(key, name, f"cannot be imported where DAGs are parsed: {error}") from error
    if not callable(found):
        raise ConfigError(key, name, "must be a function")
    function: Callable[..., Any] = found
    return function
