"""Which errors of a server are tried again, and how a retry is seen."""

from __future__ import annotations

from collections.abc import Callable

import pymysql
import pytest

from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.mysql.binlog.stream import LogEndedError, ServerError
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer, StoppedError
from sluiceway.connectors.cdc.mysql.config import source_config
from sluiceway.connectors.cdc.mysql.connection import dump_error, is_transient
from sluiceway.connectors.cdc.mysql.reader import RetriedSteps
from sluiceway.errors import ConnectError, DataError, RetriableError
from unit.connectors.cdc.test_option_checks import MARIADB

_err = pymysql.err
_TRANSIENT = (0, 1040, 1053, 1152, 1158, 1159, 1160, 1161, 1205, 1213, 1317, 1927, 1969, 2002, 2003, 2006, 2013, 2055, 3024)
_PERMANENT = {
    1038: "out of sort memory",
    1044: "access to a database",
    1045: "access denied",
    1049: "unknown database",
    1052: "ambiguous column",
    1054: "unknown column",
    1060: "duplicate column",
    1064: "syntax",
    1105: "unknown error",
    1142: "privilege",
    1146: "no such table",
    1227: "REPLICATION SLAVE",
    1242: "subquery with several rows",
    1305: "unknown function",
    4161: "unknown type of MariaDB",
}


@pytest.mark.parametrize("class_", [_err.OperationalError, _err.ProgrammingError, _err.InternalError, _err.DatabaseError])
def test_only_numbers_that_heal_are_tried_again(class_: type[Exception]) -> None:
    assert [code for code in _TRANSIENT if not is_transient(class_(code, "m"))] == []
    assert [code for code in _PERMANENT if is_transient(class_(code, "m"))] == []


@pytest.mark.parametrize("error", [ValueError("v"), TypeError("t"), ConnectError("c"), _err.DataError(1264, "m")])
def test_other_errors_are_not_tried_again(error: Exception) -> None:
    assert not is_transient(error)


def test_a_lost_connection_is_tried_again() -> None:
    assert is_transient(_err.InterfaceError(0, ""))


def test_a_dump_that_is_refused_is_not_tried_again() -> None:
    assert [code for code in _TRANSIENT if not isinstance(dump_error(ServerError(code, "m")), RetriableError)] == []
    assert [code for code in _PERMANENT if isinstance(dump_error(ServerError(code, "m")), RetriableError)] == []
    assert "privilege REPLICATION SLAVE" in str(dump_error(ServerError(1227, "Access denied")))


def _config(most: int) -> CommonConfig:
    more = {"errors.max.retries": str(most), "retriable.restart.connector.wait.ms": "0"}
    return source_config({**MARIADB, **more}).common


class _Steps:
    """A step that raises one error after the other, and then ends."""

    def __init__(self, *errors: Exception) -> None:
        self.buffer = RecordBuffer(10, 10, lambda: None)
        self.seen: list[str | None] = []
        self.disconnected = 0
        self._errors = list(errors)

    def __call__(self) -> None:
        self.seen.append(self.buffer.trouble)
        if self._errors:
            raise self._errors.pop(0)

    def disconnect(self) -> None:
        self.disconnected += 1

    def retries(self, most: int, reached: Callable[[], object] = lambda: 0) -> RetriedSteps:
        return RetriedSteps(_config(most), self.buffer, reached, self.disconnect)


@pytest.mark.parametrize("error", [RetriableError("e"), LogEndedError("e"), OSError("e"), _err.OperationalError(2013, "e")])
def test_a_step_is_tried_again_and_its_error_shown_meanwhile(error: Exception) -> None:
    step = _Steps(error)
    step.retries(-1).run(step)
    assert step.seen == [None, str(error)]
    assert (step.buffer.trouble, step.disconnected) == (None, 1)


@pytest.mark.parametrize("error", [ConnectError("e"), DataError("e"), _err.ProgrammingError(1064, "e"), TypeError("e")])
def test_an_error_that_does_not_heal_is_raised(error: Exception) -> None:
    step = _Steps(error)
    with pytest.raises((ConnectError, TypeError)) as raised:
        step.retries(-1).run(step)
    assert not isinstance(raised.value, RetriableError)
    assert raised.value is error or str(raised.value) == "The server refuses a statement: e (error 1064)."
    assert step.seen == [None]


def test_retries_are_counted_while_the_log_does_not_move() -> None:
    step = _Steps(*[OSError("gone")] * 5)
    with pytest.raises(ConnectError, match=r"gone Gave up after 2 retries \(errors\.max\.retries\)"):
        step.retries(2).run(step)
    assert len(step.seen) == 3
    moving = iter(range(100))
    step = _Steps(*[OSError("gone")] * 5)
    step.retries(2, lambda: next(moving)).run(step)
    assert len(step.seen) == 6


def test_a_stopped_task_does_not_try_again() -> None:
    step = _Steps(StoppedError())
    with pytest.raises(StoppedError):
        step.retries(-1).run(step)
    step = _Steps(OSError("gone"))
    step.buffer.stop()
    step.retries(-1).run(step)
    assert step.seen == []
