"""Imports the user's module, and makes its dlt sources. Runs in the reader's process.

Every error names the config key that is wrong, and shows no secret.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dlt.common.configuration.exceptions import ConfigFieldMissingException, ConfigurationException
from dlt.common.schema import Schema
from dlt.extract import DltResource, DltSource

from sluiceway.config.masking import is_secret, shown
from sluiceway.config.password import HIDDEN
from sluiceway.connectors.dlt import config as keys
from sluiceway.connectors.dlt.config import DltConfig
from sluiceway.connectors.dlt.internals import use_values, without_state
from sluiceway.connectors.dlt.values import SECRET_PREFIX
from sluiceway.errors import ConfigError

_KINDS = "a dlt source, a resource, or a list of them"


def sources_of(config: DltConfig) -> list[DltSource]:
    """Return the sources with the selected resources. Raises ConfigError, and what the user's function raises."""
    use_values(config.values)
    sources = _with_resources(_as_sources(config, _called(config, _function(config.source))), config.resources)
    names = [each.name for each in sources]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(keys.SOURCE, None, f"returns two sources with the name {twice}, so that their states would be one")
    if not any(each.resources.selected for each in sources):
        raise ConfigError(keys.RESOURCES, None, "must be set, because the source selects no resource by itself")
    return sources


def _function(path: str) -> Any:
    name, _, attribute = path.rpartition(".")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(
                keys.SOURCE,
                path,
                f"names the module {name}, and there is no module {error.name} where tasks run. Install it there, "
                "or put it into a folder of the worker's plugin.path.",
            ) from None
        raise ConfigError(
            keys.SOURCE, path, f"cannot be imported, because the module {error.name} is not installed where tasks run"
        ) from None
    except Exception as error:
        raise ConfigError(keys.SOURCE, path, f"cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, attribute, None)
    if found is None:
        own = (each for each, value in vars(module).items() if callable(value) and getattr(value, "__module__", "") == name)
        functions = sorted(each for each in own if not inspect.isclass(getattr(module, each)))
        known = f"; it has {', '.join(functions[:20])}" if functions else ""
        raise ConfigError(keys.SOURCE, path, f"names a function that the module {name} does not have{known}")
    return found


def _called(config: DltConfig, function: Any) -> Any:
    """Return what the function returns, or a resource that needs no call."""
    if isinstance(function, (DltSource, DltResource)) and not config.args:
        return function
    if not callable(function):
        raise ConfigError(keys.SOURCE, config.source, f"is no function: it is {type(function).__name__}")
    _check_arguments(config, function)
    try:
        with without_state():
            return function(**config.args)
    except ConfigFieldMissingException as error:
        missing = ", ".join(error.fields)
        raise ConfigError(
            keys.SOURCE, config.source, f"has no value for {missing}. Set it in {keys.ARGS}, or as {_path_of(error)}."
        ) from None
    except ConfigurationException as error:
        raise ConfigError(keys.SOURCE, config.source, f"cannot be configured: {error}") from error


def _check_arguments(config: DltConfig, function: Any) -> None:
    """Refuse arguments that the function does not have, before it does anything."""
    try:
        signature = inspect.signature(getattr(function, "__wrapped__", function))
    except (TypeError, ValueError):  # of native code
        return
    parameters = signature.parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    unknown = [name for name in config.args if name not in parameters]
    if unknown:
        raise ConfigError(
            keys.ARGS, None, f"has {', '.join(unknown)}, which {config.source} does not take. It takes {', '.join(parameters)}."
        )


def _path_of(error: ConfigFieldMissingException) -> str:
    """Return the keys that a missing value can have in the config: the shortest place where dlt looks."""
    places = []
    for field, traces in error.traces.items():
        found = [each.key for each in getattr(traces, "traces", traces)] if traces else []
        places.append(f"{SECRET_PREFIX}{min(found, key=len) if found else field}")
    return ", ".join(places) or f"{SECRET_PREFIX}NAME"


def _as_sources(config: DltConfig, made: Any) -> list[DltSource]:
    if isinstance(made, DltSource):
        return [made]
    if isinstance(made, DltResource):
        return [_of_resources(config, [made])]
    if isinstance(made, (list, tuple)) and made and all(isinstance(each, (DltSource, DltResource)) for each in made):
        resources = [each for each in made if isinstance(each, DltResource)]
        return [
            *(each for each in made if isinstance(each, DltSource)),
            *([_of_resources(config, resources)] if resources else []),
        ]
    kind = "a generator" if isinstance(made, types.GeneratorType) else type(made).__name__
    raise ConfigError(
        keys.SOURCE, config.source, f"returns {kind} instead of {_KINDS}. Mark the function with @dlt.source or @dlt.resource."
    )


def _of_resources(config: DltConfig, resources: Sequence[DltResource]) -> DltSource:
    """Return a source of single resources. Its name is the function's, so that it stays whatever the function returns."""
    name = re.sub("[^a-z0-9_]", "_", config.source.rpartition(".")[2].lower()).strip("_") or "source"
    return DltSource(Schema(name), resources[0].section or name, list(resources))


def _with_resources(sources: list[DltSource], wanted: Sequence[str]) -> list[DltSource]:
    if not wanted:
        return sources
    known = {name for each in sources for name in each.resources}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ConfigError(
            keys.RESOURCES, ",".join(unknown), f"are resources that the source does not have. It has {', '.join(sorted(known))}."
        )
    chosen = [(each, [name for name in wanted if name in each.resources]) for each in sources]
    return [each.with_resources(*names) for each, names in chosen if names]


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these secrets, and without what looks like one, such as the password in a URL."""
    for secret in sorted({each for each in secrets if len(each) > 2}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return shown("", text)


def secrets_of(value: Any, *, secret: bool = False) -> list[str]:
    """Return the texts in arguments whose names indicate a secret, as references in JSON may be."""
    if isinstance(value, Mapping):
        return [text for name, each in value.items() for text in secrets_of(each, secret=secret or is_secret(str(name)))]
    if isinstance(value, (list, tuple)):
        return [text for each in value for text in secrets_of(each, secret=secret)]
    return [value] if secret and isinstance(value, str) else []
