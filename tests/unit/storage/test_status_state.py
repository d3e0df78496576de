from __future__ import annotations

from sluiceway.storage import codec
from sluiceway.storage.codec import KeyValue, decode_status_record
from sluiceway.storage.heartbeats import Heartbeat
from sluiceway.storage.model import LeaseOwner, State, Status, TaskId
from sluiceway.storage.status_state import StatusState, removal

RUNNING = Status(State.RUNNING, "w", 1)


def state_of(*records: KeyValue) -> StatusState:
    state = StatusState()
    for record in records:
        state.apply(decode_status_record(*record))
    return state


def test_the_last_record_of_a_key_counts_and_tombstones_remove() -> None:
    failed = Status(State.FAILED, "w", 1, trace="x")
    state = state_of(
        codec.encode_connector_status("a", RUNNING),
        codec.encode_connector_status("a", failed),
        codec.encode_task_status(TaskId("a", 0), RUNNING),
        codec.encode_task_status(TaskId("a", 1), RUNNING),
        codec.encode_task_status(TaskId("a", 0), None),
        codec.encode_topic_status("a", "t", 0, 1),
        codec.encode_topic_status("a", "u", 0, 1),
        (codec.topic_status_key("a", "t"), None),
    )
    assert state.connectors == {"a": failed}
    assert state.tasks == {"a": {1: RUNNING}}
    assert state.topics == {"a": {"u"}}


def test_a_late_report_of_a_replaced_process_is_ignored() -> None:
    lost = Status(State.UNASSIGNED, "w", 2, trace="its host")
    state = state_of(
        codec.encode_task_status(TaskId("a", 0), RUNNING),
        codec.encode_task_status(TaskId("a", 0), lost),
        codec.encode_task_status(TaskId("a", 0), RUNNING),
    )
    assert state.tasks == {"a": {0: lost}}
    again = Status(State.RUNNING, "another", 1)
    state.apply(decode_status_record(*codec.encode_task_status(TaskId("a", 0), again)))
    assert state.tasks == {"a": {0: again}}, "generations of different workers are not compared"


def test_unknown_tombstones_and_unreadable_records_change_nothing() -> None:
    state = state_of(codec.encode_connector_status("a", None), codec.encode_task_status(TaskId("a", 0), None), (b"x", b"y"))
    assert not any(state.tasks.values())
    assert not state.connectors


def test_removal_has_a_tombstone_for_every_record_of_one_connector() -> None:
    state = state_of(
        codec.encode_connector_status("a", RUNNING),
        codec.encode_task_status(TaskId("a", 1), RUNNING),
        codec.encode_task_status(TaskId("a", 0), RUNNING),
        codec.encode_topic_status("a", "t", 0, 1),
        codec.encode_connector_status("ab", RUNNING),
        codec.encode_topic_status("ab", "t", 0, 1),
    )
    keys = [b"status-topic-t:connector-a", b"status-connector-a", b"status-task-a-0", b"status-task-a-1"]
    assert removal(state, "a") == [(key, None) for key in keys]
    assert removal(state, "a", only_topics=True) == [(keys[0], None)]
    assert removal(state, "unknown") == []


# Heartbeats.

TASK = TaskId("a", 0)
HEARTBEAT = Heartbeat("w", {"a": 1}, {TASK: 1})


def timestamps(state: StatusState) -> tuple[int, int]:
    return state.connectors["a"].timestamp, state.tasks["a"][0].timestamp


def with_statuses(status: Status, timestamp: int = 0) -> StatusState:
    state = StatusState()
    for record in (codec.encode_connector_status("a", status), codec.encode_task_status(TASK, status)):
        state.apply(decode_status_record(*record, timestamp))
    return state


def test_a_heartbeat_renews_the_statuses_that_it_names() -> None:
    state = with_statuses(RUNNING, 1000)
    before = state.snapshot()["a"]
    state.renew(HEARTBEAT, 11_000)
    assert timestamps(state) == (11_000, 11_000)
    assert state.snapshot()["a"] == before
    assert state.snapshot()["a"] is not before


def test_a_heartbeat_of_a_process_that_was_replaced_renews_nothing() -> None:
    for replaced in (Status(State.RUNNING, "other", 2), Status(State.RUNNING, "w", 2), Status(State.RUNNING, "other", 1)):
        state = with_statuses(replaced, 1000)
        state.renew(HEARTBEAT, 11_000)
        assert timestamps(state) == (1000, 1000)


def test_a_status_that_is_read_after_its_heartbeat_is_renewed_too() -> None:
    """They may be in different partitions, whose records have no common order."""
    state = StatusState()
    state.renew(HEARTBEAT, 11_000)
    for record in (codec.encode_connector_status("a", RUNNING), codec.encode_task_status(TASK, RUNNING)):
        state.apply(decode_status_record(*record, 1000))
    assert timestamps(state) == (11_000, 11_000)
    state.apply(decode_status_record(*codec.encode_connector_status("a", RUNNING), 12_000))
    assert timestamps(state) == (12_000, 11_000)


def test_a_heartbeat_creates_no_status() -> None:
    state = StatusState()
    state.renew(HEARTBEAT, 11_000)
    assert state.snapshot() == {}


def test_the_owner_is_that_of_the_driver_that_wrote_the_status() -> None:
    owner = LeaseOwner("d", "r", "t")
    state = with_statuses(RUNNING, 1000)
    assert state.owner("a") is None
    state.renew(Heartbeat("w", {"a": 1}, owner=owner), 11_000)
    assert (state.owner("a"), state.owner("b")) == (owner, None)
    for newer in (Status(State.RUNNING, "w", 2), Status(State.RUNNING, "other", 1)):
        state.apply(decode_status_record(*codec.encode_connector_status("a", newer), 12_000))
        assert state.owner("a") is None


def test_the_last_heartbeat_of_a_driver_says_where_its_metrics_are() -> None:
    state = StatusState()
    state.renew(Heartbeat("w", {"a": 1}, metrics="http://h:1"), 11_000)
    state.renew(Heartbeat("w", {"a": 1}, metrics="http://h:2"), 12_000)
    state.renew(HEARTBEAT, 13_000)  # of a task host, which has no server
    assert state.metrics == {"w": ("http://h:2", 12_000)}


def test_a_driver_is_known_by_its_heartbeat_whoever_has_written_the_status() -> None:
    state = state_of(codec.encode_connector_status("a", Status(State.STOPPED, "rest", 0)))
    assert state.driver("a", 0) is None
    state.renew(Heartbeat("w", {"a": 1}), 11_000)
    assert state.driver("a", 11_000) == "w"
    assert state.driver("a", 11_001) is None, "too old"
    state.apply(decode_status_record(*codec.encode_connector_status("a", None)))
    assert state.driver("a", 0) is None, "deleted"


def test_a_driver_that_has_ended_has_no_connector_until_its_next_heartbeat() -> None:
    state = with_statuses(RUNNING, 1000)
    state.renew(Heartbeat("w", {"a": 1, "b": 1}), 11_000)
    state.renew(Heartbeat("other", {"b": 1}), 12_000)
    assert (state.driver("a", 11_000), state.ended_driver("a")) == ("w", None)
    state.end("w")
    assert (state.driver("a", 11_000), state.ended_driver("a")) == (None, "w")
    assert (state.driver("b", 11_000), state.ended_driver("b")) == ("other", None)
    state.renew(Heartbeat("w", {"a": 1}), 13_000)
    assert (state.driver("a", 11_000), state.ended_driver("a")) == ("w", None)
