"""Requests for dead letter queue records that are refused before Kafka is asked."""

from __future__ import annotations

import pytest

from support.rest_replay import Connect


@pytest.fixture
def connect() -> Connect:
    made = Connect()
    body = {"name": "c", "config": {"connector.class": "FileStreamSink", "topics": "t"}}
    assert made.http.post("/connectors", json=body).status_code == 201
    return made


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], '"records", a list'),
        ({}, '"records", a list'),
        ({"records": []}, '"records", a list'),
        ({"records": [{"partition": 0, "offset": 1}], "to": "t"}, '"records", a list'),
        ({"records": [{"partition": 0, "offset": 1}], "topic": 1}, '"topic" must be a string'),
        ({"records": [{"partition": 0}]}, 'the numbers "partition" and "offset"'),
        ({"records": [{"partition": True, "offset": 1}]}, 'the numbers "partition" and "offset"'),
        ({"records": [{"partition": 0, "offset": -1}]}, 'the numbers "partition" and "offset"'),
        ({"records": ["0:1"]}, 'the numbers "partition" and "offset"'),
        ({"records": [{"partition": 0, "offset": 1}]}, "has no dead letter queue"),
    ],
)
def test_a_replay_that_cannot_be_read_is_refused(connect: Connect, body: object, message: str) -> None:
    answer = connect.http.post("/connectors/c/dead-letters/replay", json=body)
    assert answer.status_code == 400
    assert message in answer.json()["message"]


def test_a_connector_without_a_queue_has_no_records(connect: Connect) -> None:
    assert connect.http.get("/connectors/c/dead-letters").json() == {"topic": None, "count": None, "records": []}
    assert connect.http.get("/connectors/x/dead-letters").status_code == 404
    assert connect.http.get("/connectors/c/dead-letters?limit=501").status_code == 400
