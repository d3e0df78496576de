"""Errors: pickling, because Spark sends them from executors to the driver, and the texts of messages and traces."""

from __future__ import annotations

import inspect
import pickle

import pytest

import sluiceway.errors as errors
from sluiceway.errors import TRACE_BYTES, ConfigError, ConnectError, DataError, InvalidConfigError, KafkaClientError, trace_of

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, ConnectError)]


def example(cls: type[ConnectError]) -> ConnectError:
    if cls is ConfigError:
        return ConfigError("batch.size", 0, "Value must be at least 1")
    if cls is InvalidConfigError:
        return InvalidConfigError(["first", "second"])
    if cls is KafkaClientError:
        return KafkaClientError("Cannot write: timed out.", "_MSG_TIMED_OUT")
    return cls("what went wrong")


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_is_equal_after_pickling(cls: type[ConnectError]) -> None:
    error = example(cls)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert type(copy) is cls
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_config_errors_have_kafkas_message() -> None:
    assert (
        str(ConfigError("a", None, "Value must be non-null")) == "Invalid value null for configuration a: Value must be non-null"
    )
    assert str(ConfigError("plain text")) == "plain text"


def test_a_trace_begins_with_type_and_message() -> None:
    try:
        raise ConnectError("no such thing")
    except ConnectError as error:
        trace = trace_of(error)
    assert trace.startswith("sluiceway.errors.ConnectError: no such thing\n")
    assert "test_a_trace_begins_with_type_and_message" in trace


def test_the_trace_of_an_error_that_is_its_own_cause_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert trace_of(first).startswith("builtins.ValueError: first\n")


def test_messages_and_traces_are_cut_before_a_broker_refuses_them() -> None:
    error = DataError(f"A value of 2 MB: {'ü' * 1_000_000} is not a number.")
    assert len(str(error).encode()) <= 4096
    assert str(error).startswith("A value of 2 MB: üü")
    assert str(error).endswith("üü is not a number.")
    assert " bytes in all) ... " in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
    try:
        raise ValueError("x" * 2_000_000)
    except ValueError as raw:
        trace = trace_of(raw)
    assert len(trace.encode()) <= TRACE_BYTES
    assert trace.startswith("builtins.ValueError: xx")
    assert trace.rstrip().endswith("x")
    assert trace_of(ValueError("short")).startswith("builtins.ValueError: short\n")
