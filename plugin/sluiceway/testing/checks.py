"""What all contracts check with: failures that say what to do, and comparisons that see every difference."""

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
    """A class does not keep Connect's contract; the text says where, what, and what to do about it."""


def breach(where: str, what: str, advice: str, cause: BaseException | None = None) -> NoReturn:
    """Fail the test: ``where`` the contract is broken, ``what`` happened, and the ``advice``, each in a few words."""
    raise ContractError(f"{where}: {what}. {advice}.") from cause


def fingerprint(value: Any) -> Any:
    """Return what a value is made of, for comparison: types, NaN and signs of zero included, the order of dicts left out.

    Later changes of the value do not reach it, so that two of them tell whether it was changed meanwhile.
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
    """Return the fingerprint of what a call returns, or the type and text of what it raises."""
    try:
        return fingerprint(call(*arguments))
    except Exception as error:  # noqa: BLE001 (an outcome like any other)
        return "raised", type(error), str(error)


@contextmanager
def only_these_errors(where: str, allowed: tuple[type[Exception], ...], advice: str) -> Iterator[None]:
    """Let errors of the allowed kinds pass silently, once they are known to pickle; any other one is a breach."""
    try:
        yield
    except ContractError:
        raise
    except allowed as error:
        check_pickles(where, error)
    except Exception as error:  # noqa: BLE001 (that is what is looked for)
        breach(where, f"raised {_shown(error)}", advice, error)


@contextmanager
def no_error(where: str, advice: str) -> Iterator[None]:
    """Let no error pass."""
    try:
        yield
    except ContractError:
        raise
    except Exception as error:  # noqa: BLE001 (that is what is looked for)
        breach(where, f"raised {_shown(error)}", advice, error)


def check_pickles(where: str, error: BaseException) -> None:
    """Check that an error survives the way from an executor to the driver, type and text."""
    advice = "Hand all arguments of __init__ to super().__init__, and keep nothing in the error that has no pickle"
    try:
        back = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    except Exception as problem:  # noqa: BLE001 (whatever it is, it does not pickle)
        breach(where, f"the {type(error).__name__} that it raises cannot be pickled ({problem})", advice, problem)
    if type(back) is not type(error) or str(back) != str(error):
        breach(where, f"the error {str(error)!r} comes out of pickle as {_shown(back)}", advice)


def check_found_by_name(cls: type) -> None:
    """Check that another process finds a class by its dotted name, as a config or pickle gives it."""
    path = f"{cls.__module__}.{cls.__qualname__}"
    advice = "Define the class at the top level of a module that is installed or on sys.path"
    try:
        found = getattr(importlib.import_module(cls.__module__), cls.__qualname__, None)
    except ImportError as error:
        breach(path, f"cannot be imported ({error})", advice, error)
    if found is not cls:
        breach(path, "another process does not find the class by this name", advice)


def check_documented(owner: str, definition: ConfigDef) -> None:
    """Check that every option says what it is for, and that its default is one of its own valid values."""
    for key in definition:
        where = f"{owner}.config_def(), option {key.name}"
        if not key.doc.strip():
            breach(where, "has no documentation", "Give its ConfigKey a doc: what it does, and in which unit")
        if key.required or key.default is None:
            continue
        try:
            value = key.parse({})
            if key.validator is not None:
                key.validator(key.name, value)
        except ConfigError as error:
            breach(where, f"its default is refused by its own type or validator ({error})", "Make them agree", error)


def required_keys(definition: ConfigDef) -> list[ConfigKey]:
    """Return the options that have no default."""
    return [key for key in definition if key.required]


def secrets_of(definition: ConfigDef, config: Mapping[str, str]) -> dict[str, str]:
    """Return the PASSWORD options of a config that are long enough to be told from other text."""
    names = [key.name for key in definition if key.type is Type.PASSWORD]
    return {name: config[name] for name in names if len(config.get(name, "")) >= 4}


@contextmanager
def logged() -> Iterator[list[str]]:
    """Collect the text of everything that is logged meanwhile, at every level."""
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
