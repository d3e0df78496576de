"""The effect of a connector's ``errors.*`` keys on a failed record."""

from __future__ import annotations

import pytest

from sluiceway.errors import DataError, RetriableError
from sluiceway.preview.errors import ErrorPolicy, Failures
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage

ALL = {"errors.tolerance": "all"}
DLQ = {"errors.deadletterqueue.topic.name": "bad"}
RETRY = {"errors.retry.timeout": "5000"}
SKIPPED = "The record is skipped, because errors.tolerance=all"
FAILS = "The task fails, because errors.tolerance=none."


@pytest.mark.parametrize(
    ("config", "error", "outcome"),
    [
        ({}, DataError("x"), FAILS),
        (ALL, DataError("x"), f"{SKIPPED}."),
        ({**ALL, **DLQ}, DataError("x"), f"{SKIPPED}, and written to the dead letter queue topic bad."),
        (DLQ, DataError("x"), f"{FAILS} The record is written to the dead letter queue topic bad."),
        (RETRY, DataError("x"), FAILS),
        (RETRY, RetriableError("x"), f"The operation is retried for 5 s. If it still fails: {FAILS}"),
        (
            {"errors.retry.timeout": "-1"},
            RetriableError("x"),
            "The operation is retried without end, because errors.retry.timeout=-1.",
        ),
    ],
)
def test_the_outcome_follows_the_policy(config: dict[str, str], error: Exception, outcome: str) -> None:
    assert ErrorPolicy(config).outcome(error) == outcome


def test_an_error_names_its_stage_class_and_transform() -> None:
    image = ErrorPolicy(ALL).image(DataError("no such field"), "TRANSFORMATION", dict, "mask")
    assert image == {
        "stage": "TRANSFORMATION",
        "class": "builtins.dict",
        "transform": "mask",
        "message": "org.apache.kafka.connect.errors.DataException: no such field",
        "tolerated": True,
        "outcome": f"{SKIPPED}.",
    }


def test_failures_are_noted_and_taken_once() -> None:
    failures = Failures()
    error = DataError("x")
    context = ProcessingContext(Stage.KEY_CONVERTER, dict, ConsumerRecord("t", 0, 0))
    assert failures.retry(lambda: pytest.fail("must not be retried"), "", error, context) is None
    assert failures.take() == (error, context)
    assert failures.take() is None
    assert failures.execute_failed("", error, context).done()
    assert failures.take() == (error, context)
