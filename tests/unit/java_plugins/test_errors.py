from __future__ import annotations

import copy
from pathlib import Path

import pytest

from sluiceway.errors import ConfigError, ConnectError, DataError, RetriableError, java_text_of, trace_of
from sluiceway.java_plugins import host
from sluiceway.java_plugins.errors import JavaProcessError, java_error

_CONNECT = "org.apache.kafka.connect.errors."


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ([_CONNECT + "RetriableException", _CONNECT + "ConnectException"], RetriableError),
        (["org.example.Late", _CONNECT + "RetriableException"], RetriableError),
        ([_CONNECT + "DataException", _CONNECT + "ConnectException"], DataError),
        (["org.apache.kafka.common.config.ConfigException"], ConfigError),
        (["java.lang.StackOverflowError", "java.lang.Error"], ConnectError),
    ],
)
def test_java_exceptions_become_errors_of_the_same_meaning(classes: list[str], kind: type) -> None:
    error = java_error({"classes": classes, "message": "no", "trace": f"{classes[0]}: no\n\tat org.example.Task.poll\n"})
    assert isinstance(error, kind)
    assert java_text_of(error) == f"{classes[0]}: no"
    assert trace_of(error) == f"{classes[0]}: no\n\tat org.example.Task.poll\n"
    again = copy.copy(error)
    assert (type(again), str(again), again.java_class) == (type(error), "no", classes[0])


@pytest.mark.parametrize(
    ("message", "option"),
    [
        ("Java heap space", "-Xmx1g"),
        ("GC overhead limit exceeded", "-Xmx1g"),
        (None, "-Xmx1g"),
        ("Metaspace", "-XX:MaxMetaspaceSize=1g"),
        ("Compressed class space", "-XX:CompressedClassSpaceSize=256m"),
        ("Cannot reserve 65536 bytes of direct buffer memory (allocated: 9, limit: 9)", "-XX:MaxDirectMemorySize=1g"),
        ("unable to create native thread: possibly out of memory or process/resource limits reached", None),
    ],
)
@pytest.mark.parametrize("is_cause", [False, True])
def test_a_process_without_memory_says_which_option_allows_more(message: str | None, option: str | None, is_cause: bool) -> None:
    name = "java.lang.OutOfMemoryError"
    thrown = name + (f": {message}" if message else "")
    trace = f"org.example.Failed: x\n\tat a.B\nCaused by: {thrown}\n\tat c.D\n" if is_cause else f"{thrown}\n\tat c.D\n"
    error = java_error({"classes": ["org.example.Failed" if is_cause else name], "message": message, "trace": trace})
    told = trace_of(error).removeprefix(trace)
    assert trace_of(error).startswith(trace)
    assert (f"sluiceway.java.opts, such as {option}." in told) == (option is not None)
    assert "ulimit -u" in told or option is not None
    assert str(error) == (message or error.java_class), "headers of dead letter queue records are Kafka Connect's"


@pytest.mark.parametrize(
    ("code", "told"), [(53, "sluiceway.java.opts, such as -Xmx1g"), (-9, "sets its heap"), (3, "standard error")]
)
def test_a_process_that_ended_says_what_may_have_ended_it(tmp_path: Path, code: int, told: str) -> None:
    assert told in str(host._death("c", code, tmp_path / "none"))


def test_a_trace_ends_with_that_of_its_java_cause() -> None:
    cause = java_error({"classes": ["org.example.Bad"], "message": None, "trace": "org.example.Bad\n\tat org.example.X"})
    with pytest.raises(ConnectError) as raised:
        raise ConnectError("Tolerance exceeded") from cause
    assert trace_of(raised.value).startswith("sluiceway.errors.ConnectError: Tolerance exceeded\n")
    assert trace_of(raised.value).endswith("Caused by: org.example.Bad\n\tat org.example.X")
    assert "Caused by: # SIGSEGV" in trace_of(JavaProcessError("It ended.", "# SIGSEGV"))
