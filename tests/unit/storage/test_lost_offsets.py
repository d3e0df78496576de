from __future__ import annotations

import pytest

from sluiceway.storage.model import ClusterState, ConnectorEntry
from sluiceway.storage.offset_backing_store import sources_that_ran


def ran(config: dict[str, str] | None, *, committed: bool = True) -> list[str]:
    entry = ConnectorEntry("c", config=config, applied_config=config if committed else None)
    return sources_that_ran(ClusterState({"c": entry}))


@pytest.mark.parametrize(
    "config",
    [
        {"connector.class": "FileStreamSource"},
        {"connector.class": "org.example.Unheard", "url": "x"},
        {"connector.class": "MirrorSource", "topics": "a"},
    ],
    ids=["known", "not installed here", "a source that has topics"],
)
def test_a_source_that_had_tasks_has_run(config: dict[str, str]) -> None:
    assert ran(config) == ["c"]


@pytest.mark.parametrize(
    "config",
    [{"connector.class": "FileStreamSink", "topics": "a"}, {"connector.class": "org.example.Unheard", "topics.regex": "a.*"}],
    ids=["known", "not installed here"],
)
def test_sinks_have_no_source_offsets(config: dict[str, str]) -> None:
    assert ran(config) == []


def test_a_source_that_never_had_tasks_has_not_run() -> None:
    assert ran({"connector.class": "FileStreamSource"}, committed=False) == []


def test_a_deleted_connector_does_not_count() -> None:
    assert ran(None) == []
