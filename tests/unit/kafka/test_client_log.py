"""The log lines of librdkafka that are shown. The lines are real ones, some of them shortened."""

from __future__ import annotations

import logging

import pytest

from sluiceway.kafka.clients import ClientLogFilter

REFUSED = (
    "FAIL",
    "a#producer-1",
    "[thrd:127.0.0.1:9092/bootstrap]: 127.0.0.1:9092/bootstrap: Connect failed: Connection refused (after 0ms in state CONNECT)",
)
SECURED = (*REFUSED[:2], REFUSED[2].replace("127.0.0.1:9092/", "sasl_ssl://127.0.0.1:9092/"))
REFUSED_AGAIN = (*REFUSED[:2], REFUSED[2].replace("CONNECT)", "CONNECT, 30 identical error(s) suppressed)"))
PID = (
    "GETPID",
    "a-statuses#producer-2",
    "[thrd:main]: Failed to acquire idempotence PID from broker 127.0.0.1:9092/1: Broker: Coordinator load in progress: retrying",
)
TXN = (
    "GETPID",
    "a-configs#producer-1",
    "[thrd:main]: Failed to acquire transactional PID from broker TxnCoordinator/1: Broker: Not coordinator: retrying",
)
TIMEOUT = ("REQTMOUT", "a#consumer-1", "[thrd:127.0.0.1:9092/1]: 127.0.0.1:9092/1: Timed out FetchRequest in flight (after 61s)")
DOWN = ("ERROR", "a#consumer-1", "[thrd:main]: 1/1 brokers are down")
RETRIED = [REFUSED, SECURED, PID, TXN, TIMEOUT, DOWN]
PASSWORD = ("FAIL", "a#producer-1", "[thrd:sasl_plaintext://b:9092/bootstrap]: SASL authentication error: Authentication failed")
FENCED = ("TXNERR", "a#producer-1", "[thrd:main]: Fatal transaction error: fenced by newer instance (_FENCED)")
OFFSET = ("OFFSET", "a#consumer-1", "[thrd:main]: t [0]: offset reset (at offset 5) to offset BEGINNING")

Line = tuple[str, str, str]


class Log:
    """A logger with the filter, whose lines have the times that a test gives them."""

    def __init__(self, level: int = logging.INFO) -> None:
        self.logger = logging.getLogger("sluiceway.test_client_log")
        self.logger.setLevel(level)
        self.filter = ClientLogFilter()

    def shown(self, line: Line, at: float, level: int = logging.ERROR) -> str | None:
        """Return the level at which a line is shown, or None."""
        record = self.logger.makeRecord(self.logger.name, level, "f", 1, "%s [%s] %s", line, None)
        record.created = at
        return record.levelname if self.filter.filter(record) else None


@pytest.mark.parametrize("line", RETRIED)
def test_retried_trouble_is_no_warning_unless_it_lasts(line: Line) -> None:
    log = Log()
    assert [log.shown(line, at) for at in (0, 0.5, 9.9)] == [None] * 3
    assert log.shown(line, 10) == "WARNING"
    assert [log.shown(line, at) for at in (10.5, 69.9)] == [None] * 2, "once a minute"
    assert log.shown(line, 70) == "WARNING"


def test_trouble_that_has_healed_begins_again() -> None:
    log = Log()
    assert [log.shown(REFUSED, at) for at in (0, 3, 63, 66, 200)] == [None] * 5


def test_identical_errors_that_librdkafka_has_suppressed_do_not_begin_a_new_series() -> None:
    log = Log()
    assert log.shown(REFUSED, 0) is None
    log.shown(REFUSED_AGAIN, 5)
    assert log.shown(REFUSED_AGAIN, 36) == "WARNING"


def test_held_lines_are_shown_at_debug() -> None:
    assert Log(logging.DEBUG).shown(PID, 0) == "DEBUG"


@pytest.mark.parametrize("line", [PASSWORD, OFFSET])
def test_other_lines_are_shown_at_once_and_once_a_minute(line: Line) -> None:
    log = Log()
    assert [log.shown(line, at, logging.WARNING) for at in (0, 1, 59.9, 60)] == ["WARNING", None, None, "WARNING"]


def test_being_fenced_is_never_shown() -> None:
    assert Log(logging.DEBUG).shown(FENCED, 0) is None


def test_the_clients_log_has_the_filter() -> None:
    from sluiceway.kafka.clients import log

    assert any(isinstance(each, ClientLogFilter) for each in log.filters)
