"""Tests of the summary of a run."""

from __future__ import annotations

import json

from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.run_summary import MAX_CHANGES, RunSummary, progress_line

A, B = {"filename": "a"}, {"filename": "b"}


def test_a_summary_lists_changed_partitions_with_both_offsets() -> None:
    before = ConnectorProgress([(A, {"position": 1}), (B, {"position": 5})], count=10)
    after = ConnectorProgress([(A, {"position": 4}), (B, {"position": 5}), ({"filename": "c"}, {"position": 2})], count=15)
    summary = RunSummary.between(before, after, 2.0)
    assert json.loads(json.dumps(summary.as_dict())) == {
        "records": 5,
        "seconds": 2.0,
        "offsets": [
            {"partition": A, "from": {"position": 1}, "to": {"position": 4}},
            {"partition": {"filename": "c"}, "from": None, "to": {"position": 2}},
        ],
    }


def test_the_drivers_count_wins_over_the_difference_of_offsets() -> None:
    summary = RunSummary.between(ConnectorProgress(count=10), ConnectorProgress(count=99), 1.0, records=7)
    assert summary.records == 7


def test_without_the_progress_at_the_start_nothing_counts_as_changed() -> None:
    summary = RunSummary.between(None, ConnectorProgress([(A, {"position": 4})], count=15), 1.0)
    assert (summary.records, summary.changes, bool(summary)) == (None, (), False)


def test_a_summary_stays_small_enough_for_airflows_database() -> None:
    after = ConnectorProgress([({"n": number}, {"position": 1}) for number in range(MAX_CHANGES + 5)])
    assert len(RunSummary.between(ConnectorProgress(), after, 1.0).changes) == MAX_CHANGES


def test_a_line_has_records_rate_and_the_lag_of_a_sink() -> None:
    before, now = ConnectorProgress(count=100, lag=90), ConnectorProgress(count=150, lag=40)
    assert progress_line(before, now, 10.0) == "50 record(s), 5.0/s, lag 40"
    recreated = ConnectorProgress(count=20)
    assert progress_line(ConnectorProgress(count=100), recreated, 10.0) == "0 record(s), 0.0/s", "a topic created again"
    assert "not known" in progress_line(ConnectorProgress(), ConnectorProgress(), 1.0)
