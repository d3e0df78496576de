"""Checks that all contracts use: comparisons, and failures with advice."""

from __future__ import annotations

import importlib
import logging
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.data import Schema, Struct
from sluiceway.errors import ConfigError


class ContractError(AssertionError):
    """A class violates Connect's contract. The message says where, what happened, and what to do."""


def breach(where: str, what: str, advice: str, cause: BaseException | None = None) -> NoReturn:
    """Fail the test. The message says ``where`` the contract is violated, ``what`` happened, and the ``advice``."""
    raise ContractError(f"{where}: {what}. {advice}.") from cause


def fingerprint(value: Any) -> Any:
    """Return a copy of a value for comparison, which includes types, NaN and the sign of zero, but not the order of dicts.

    Comparing two fingerprints shows whether the value was changed in between.
    """
    if isinstance(value, Schema):
        return value
    if isinstance(value, (SourceRecord, SinkRecord)):
        return type(value), tuple((name, fingerprint(getattr(value, name))) for name in sorted(type(value).__slots__))
    if isinstance(value, Struct):
        fields = (field.name for field in value.schema.fields)
        return Struct, value.schema, tuple(fingerprint(value.get_without_default(name)) for name in fields)
    if isinstance(value, Mapping):
        return type(value), {fingerprint(key): fingerprint(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), tuple(fingerprint(item) for item in value)
    return type(value), repr(value) if isinstance(value, float) else value


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the fingerprint of a call's result, or the type and text of its error."""
    try:
        return fingerprint(call(*arguments))
    except Exception as error:  # noqa: BLE001 (errors are outcomes, too)
        return "raised", type(error), str(error)


@contextmanager
def only_these_errors(where: str, allowed: tuple[type[Exception], ...], advice: str) -> Iterator[None]:
    """Suppress errors of the allowed types if they can be pickled. Any other error violates the contract."""
    try:
        yield
    except ContractError:
        raise
    except allowed as error:
        check_pickles(where, error)
    except Exception as error:  # noqa: BLE001 (any error violates the contract)
        breach(where, f"raised {_shown(error)}", advice, error)


@contextmanager
def no_error(where: str, advice: str) -> Iterator[None]:
    """Treat any error as a violation of the contract."""
    try:
        yield
    except ContractError:
        raise
    except Exception as error:  # noqa: BLE001 (any error violates the contract)
        breach(where, f"raised {_shown(error)}", advice, error)


def check_pickles(where: str, error: BaseException) -> None:
    """Check that an error keeps its type and text when it is pickled, as on its way from an executor to the driver."""
    advice = "Pass all arguments of __init__ to super().__init__, and store only attributes that can be pickled"
    try:
        back = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    except Exception as problem:  # noqa: BLE001 (any error means that it cannot be pickled)
        breach(where, f"raised a {type(error).__name__} that cannot be pickled ({problem})", advice, problem)
    if type(back) is not type(error) or str(back) != str(error):
        breach(where, f"raised an error with the text {str(error)!r}, which pickle restores as {_shown(back)}", advice)


def check_found_by_name(cls: type) -> None:
    """Check that another process can import a class by its dotted path, as in configs and pickles."""
    path = f"{cls.__module__}.{cls.__qualname__}"
    advice = "Define the class at the top level of a module that is installed or on sys.path"
    try:
        found = getattr(importlib.import_module(cls.__module__), cls.__qualname__, None)
    except ImportError as error:
        breach(path, f"cannot be imported ({error})", advice, error)
    if found is not cls:
        breach(path, "another process cannot import the class by this path", advice)


def check_documented(owner: str, definition: ConfigDef) -> None:
    """Check that every option is documented and that its default is valid."""
    for key in definition:
        where = f"{owner}.config_def(), option {key.name}"
        if not key.doc.strip():
            breach(where, "has no documentation", "Set doc in its ConfigKey: what it does, and its unit")
        if key.required or key.default is None:
            continue
        try:
            value = key.parse({})
            if key.validator is not None:
                key.validator(key.name, value)
        except ConfigError as error:
            breach(
                where,
                f"has a default that its own type or validator refuses ({error})",
                "Change the default or the validator",
                error,
            )


def required_keys(definition: ConfigDef) -> list[ConfigKey]:
    """Return the options without a default."""
    return [key for key in definition if key.required]


def secrets_of(definition: ConfigDef, config: Mapping[str, str]) -> dict[str, str]:
    """Return the PASSWORD options of a config whose values are long enough to find them in other text."""
    names = [key.name for key in definition if key.type is Type.PASSWORD]
    return {name: config[name] for name in names if len(config.get(name, "")) >= 4}


@contextmanager
def logged() -> Iterator[list[str]]:
    """Collect the text of all log records of the block, at every level."""
    texts: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(logging.Formatter().format(record))

    root, collector = logging.getLogger(), Collector()
    level = root.level
    root.addHandler(collector)
    root.setLevel(logging.DEBUG)
    try:
        yield texts
    finally:
        root.removeHandler(collector)
        root.setLevel(level)


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
