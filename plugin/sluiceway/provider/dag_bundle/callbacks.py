"""Callbacks that a connector's config names, as its DAG's task takes them. Runs where DAGs are parsed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sluiceway.errors import ConfigError


def callbacks(named: Mapping[str, Collection[str]], allowed: Collection[str]) -> dict[str, list[Callable[..., Any]]]:
    """Return an operator's arguments (``on_failure_callback`` ...) for the functions named by key.

    Only functions of modules in ``allowed``, or below them, are taken: a config comes from whoever may change connectors.
    Raises ConfigError for others, and for what cannot be imported.
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
        raise ConfigError(key, name, "is no function")
    made: Callable[..., Any] = found
    return made
