from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError

from sluiceway.errors import ConnectError, DataError
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import Interrupted
from support.eventually import LIMIT
from unit.runtime.error_handling import ALL, CONTEXT, DEAD_LETTER_QUEUE, queue, tolerance
from unit.runtime.fake_clients import FakeProducer


def test_flush_fails_until_dead_letter_queue_records_are_acknowledged(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **DEAD_LETTER_QUEUE})
    assert made.flush(0.0)
    producers[-1].unresponsive = True
    made.execute_failed("the record", DataError("bad"), CONTEXT)
    assert not made.flush(0.0)
    producers[-1].unresponsive = False
    producers[-1].poll()
    assert made.flush(0.0)


def test_a_lost_dead_letter_queue_record_is_a_permanent_failure(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **DEAD_LETTER_QUEUE})
    producers[-1].error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    made.execute_failed("the record", DataError("bad"), CONTEXT)
    for _ in range(2):
        with pytest.raises(ConnectError, match=r"A dead letter queue record was not written.*topic dlq"):
            made.flush(1.0)
        with pytest.raises(ConnectError, match="Allow the connector"):
            made.poll_deliveries()
    assert made.counts.deadletterqueue_produce_failures == 1


def test_a_dead_letter_queue_record_that_is_too_large_fails_with_advice(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **DEAD_LETTER_QUEUE})
    producers[-1].largest = 0
    made.execute_failed("the record", DataError("bad"), CONTEXT)
    with pytest.raises(ConnectError, match=r"max\.message\.bytes"):
        made.flush(1.0)


def test_a_command_ends_the_wait_for_a_full_buffer(producers: list[FakeProducer]) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise Interrupted

    made = RetryWithToleranceOperator({**ALL, **DEAD_LETTER_QUEUE}, dead_letter_queue=queue(wait))
    producers[-1].room, producers[-1].unresponsive = 1, True
    made.execute_failed("the record", DataError("bad"), CONTEXT)
    with pytest.raises(Interrupted):
        made.execute_failed("the record", DataError("bad"), CONTEXT)
    assert waits == [0, 0]
    producers[-1].unresponsive = False
    assert made.flush(1.0), "the letter that was not sent is waited for"


def test_waiting_for_a_report_polls_the_producer(producers: list[FakeProducer]) -> None:
    made = tolerance({**ALL, **DEAD_LETTER_QUEUE})
    sent = made.execute_failed("the record", DataError("bad"), CONTEXT)
    assert not sent.done()
    waiting = threading.Thread(target=sent.result, daemon=True)
    waiting.start()
    waiting.join(LIMIT)
    assert sent.done()
    assert made.counts.records_skipped == 1
