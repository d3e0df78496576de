"""The intervals of connectors by REST."""

from __future__ import annotations

from sluiceway.config.intervals import Interval
from sluiceway.storage.intervals import IntervalEntry, IntervalState, ledger_name
from support.rest_replay import Connect
from unit.rest.servers import PARTITION

_SINK = {"connector.class": "FileStreamSink", "topics": "t", "file": "/f"}


def test_intervals_are_listed_with_the_latest_first() -> None:
    connect = Connect(places=[PARTITION])
    connect.http.put("/connectors/k/config", json=_SINK)
    assert connect.http.get("/connectors/k/intervals").json() == {"name": "k", "intervals": []}
    first = IntervalEntry(
        Interval(0, 10), IntervalState.DONE, 2, runs=("r1", "r2"), records=5, late=1, at_least=True, updated=30, rerun=1
    )
    second = IntervalEntry(Interval(10, 20), IntervalState.FAILED, runs=("r3",), error="why", updated=40)
    connect.offsets.put(ledger_name("k"), [first.update(), second.update()])
    shown = {"start": 0, "end": 10, "state": "done", "attempt": 2, "records": 5, "late": 1, "at_least": True, "rerun": True}
    failed = {
        "start": 10,
        "end": 20,
        "state": "failed",
        "attempt": 1,
        "records": None,
        "late": None,
        "at_least": False,
        "rerun": False,
    }
    assert connect.http.get("/connectors/k/intervals").json() == {
        "name": "k",
        "intervals": [
            {**failed, "runs": ["r3"], "updated": 40, "error": "why"},
            {**shown, "runs": ["r1", "r2"], "updated": 30},
        ],
    }
    assert connect.http.get("/connectors/k/offsets").json() == {"offsets": []}, "the ledger is not among its offsets"
    assert connect.http.get("/connectors/none/intervals").status_code == 404
    connect.http.put("/connectors/k/stop")
    connect.herder.report_at_rest("k")
    assert connect.http.delete("/connectors/k/offsets").status_code == 200
    assert connect.http.get("/connectors/k/intervals").json() == {"name": "k", "intervals": []}
