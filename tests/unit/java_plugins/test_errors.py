from __future__ import annotations

import copy

import pytest

from sluiceway.errors import ConfigError, ConnectError, DataError, RetriableError, java_text_of, trace_of
from sluiceway.java_plugins.errors import JavaProcessError, java_error

_CONNECT = "org.apache.kafka.connect.errors."


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ([_CONNECT + "RetriableException", _CONNECT + "ConnectException"], RetriableError),
        (["org.example.Late", _CONNECT + "RetriableException"], RetriableError),
        ([_CONNECT + "DataException", _CONNECT + "ConnectException"], DataError),
        (["org.apache.kafka.common.config.ConfigException"], ConfigError),
        (["java.lang.OutOfMemoryError", "java.lang.Error"], ConnectError),
    ],
)
def test_java_exceptions_become_errors_of_the_same_meaning(classes: list[str], kind: type) -> None:
    error = java_error({"classes": classes, "message": "no", "trace": f"{classes[0]}: no\n\tat org.example.Task.poll\n"})
    assert isinstance(error, kind)
    assert java_text_of(error) == f"{classes[0]}: no"
    assert trace_of(error) == f"{classes[0]}: no\n\tat org.example.Task.poll\n"
    again = copy.copy(error)
    assert (type(again), str(again), again.java_class) == (type(error), "no", classes[0])


def test_a_trace_ends_with_that_of_its_java_cause() -> None:
    cause = java_error({"classes": ["org.example.Bad"], "message": None, "trace": "org.example.Bad\n\tat org.example.X"})
    with pytest.raises(ConnectError) as raised:
        raise ConnectError("Tolerance exceeded") from cause
    assert trace_of(raised.value).startswith("sluiceway.errors.ConnectError: Tolerance exceeded\n")
    assert trace_of(raised.value).endswith("Caused by: org.example.Bad\n\tat org.example.X")
    assert "Caused by: # SIGSEGV" in trace_of(JavaProcessError("It ended.", "# SIGSEGV"))
