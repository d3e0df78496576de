from __future__ import annotations

import pickle

import pytest

from sluiceway.config.application import Applications
from sluiceway.storage import codec
from sluiceway.storage.codec import KeyValue
from sluiceway.storage.config_state import ConfigState, RecordChange
from sluiceway.storage.model import ClusterState, RestartRequest, TargetState, TaskId


def connector(name: str = "a", **config: str) -> KeyValue:
    return codec.encode_connector(name, config)


def task(number: int, name: str = "a", **config: str) -> KeyValue:
    return codec.encode_task(TaskId(name, number), config)


def state_of(*records: KeyValue) -> ClusterState:
    state = ConfigState()
    for offset, (key, value) in enumerate(records):
        state.apply(offset, key, value)
    return state.snapshot()


def test_task_configs_count_only_after_their_commit() -> None:
    pending = state_of(connector(), task(0, x="1"))
    assert pending.connectors["a"].task_configs == ()
    assert not pending.connectors["a"].inconsistent
    committed = state_of(connector(), task(0, x="1"), codec.encode_commit("a", 1))
    assert committed.connectors["a"].task_configs == ({"x": "1"},)


def test_new_task_configs_do_not_count_before_the_next_commit() -> None:
    state = state_of(connector(), task(0, x="old"), codec.encode_commit("a", 1), task(0, x="new"))
    assert state.connectors["a"].task_configs == ({"x": "old"},)


def test_fewer_task_configs_than_committed_are_inconsistent_until_written_again() -> None:
    broken = [connector(), task(1, x="1"), codec.encode_commit("a", 2)]
    entry = state_of(*broken).connectors["a"]
    assert (entry.inconsistent, entry.task_configs) == (True, ())
    entry = state_of(*broken, task(0, x="0"), codec.encode_commit("a", 2)).connectors["a"]
    assert (entry.inconsistent, entry.task_configs) == (True, ())  # task 1 has to be written again as well
    entry = state_of(*broken, task(0, x="0"), task(1, x="1"), codec.encode_commit("a", 2)).connectors["a"]
    assert (entry.inconsistent, entry.task_configs) == (False, ({"x": "0"}, {"x": "1"}))


def test_a_commit_of_fewer_tasks_drops_the_others() -> None:
    state = state_of(connector(), task(1, x="1"), task(0, x="0"), codec.encode_commit("a", 1))
    assert state.connectors["a"].task_configs == ({"x": "0"},)


def test_a_commit_of_no_tasks_clears_them() -> None:
    state = state_of(connector(), task(0, x="0"), codec.encode_commit("a", 1), codec.encode_commit("a", 0))
    assert state.connectors["a"].task_configs == ()
    assert not state.connectors["a"].inconsistent


def test_a_delete_clears_everything() -> None:
    state = state_of(
        connector(),
        task(0),
        codec.encode_commit("a", 1),
        codec.encode_target_state("a", TargetState.PAUSED),
        codec.encode_connector("a", None),
        codec.encode_target_state("a", None),
    )
    assert state.connectors == {}


def test_records_of_a_deleted_connector_that_compaction_leaves_are_ignored() -> None:
    leftovers = [task(0, x="old"), task(1, x="old"), codec.encode_commit("a", 2)]
    assert state_of(*leftovers).connectors == {}
    entry = state_of(*leftovers, connector(k="v")).connectors["a"]
    assert entry.task_configs == ()
    assert entry.applied_config is None
    entry = state_of(*leftovers, connector(k="v"), codec.encode_commit("a", 1)).connectors["a"]
    assert entry.inconsistent


def test_deferred_tasks_of_a_deleted_connector_do_not_count_for_the_next_of_its_name() -> None:
    state = state_of(connector(), task(0, x="old"), codec.encode_connector("a", None), connector(), codec.encode_commit("a", 1))
    assert state.connectors["a"].inconsistent


def test_a_target_state_without_a_connector_is_kept_but_is_no_connector() -> None:
    state = state_of(codec.encode_target_state("a", TargetState.STOPPED))
    assert state.names() == []
    assert state.entry("a") is None
    assert state.connectors["a"].target_state is TargetState.STOPPED
    created = state_of(codec.encode_target_state("a", TargetState.STOPPED), connector())
    assert created.connectors["a"].target_state is TargetState.STOPPED


def test_a_target_states_tombstone_means_started() -> None:
    state = state_of(connector(), codec.encode_target_state("a", TargetState.PAUSED), codec.encode_target_state("a", None))
    assert state.connectors["a"].target_state is TargetState.STARTED


def test_the_revision_follows_config_and_commits_but_not_target_states() -> None:
    records = [connector(), task(0), codec.encode_commit("a", 1), codec.encode_target_state("a", TargetState.PAUSED)]
    assert [state_of(*records[:count]).connectors["a"].revision for count in (1, 2, 3, 4)] == [0, 0, 2, 2]


def test_the_applied_config_is_the_one_of_the_last_commit() -> None:
    records = [connector(k="1"), codec.encode_commit("a", 0), connector(k="2")]
    entry = state_of(*records).connectors["a"]
    assert entry.applied_config == {"k": "1", "name": "a"}
    entry = state_of(*records, codec.encode_commit("a", 0)).connectors["a"]
    assert entry.applied_config == entry.config


def test_unreadable_records_only_advance_the_offset() -> None:
    state = ConfigState()
    state.apply(0, *connector())
    before = state.snapshot()
    assert state.apply(7, b"connector-a", b"garbage") is None
    after = state.snapshot()
    assert after.connectors == before.connectors
    assert after.offset == 8


@pytest.mark.parametrize(
    ("record", "change"),
    [
        (connector(), RecordChange("connector", "a")),
        (codec.encode_connector("a", None), RecordChange("connector", "a")),
        (codec.encode_target_state("a", TargetState.PAUSED), RecordChange("target-state", "a")),
        (task(0), None),
        (codec.encode_commit("a", 0), RecordChange("tasks", "a")),
        (codec.encode_restart(RestartRequest("a")), RecordChange("restart", "a", RestartRequest("a"))),
        ((b"session-key", b"{}"), None),
    ],
)
def test_each_kind_of_record_returns_its_change(record: KeyValue, change: RecordChange | None) -> None:
    state = ConfigState()
    state.apply(0, *connector())
    assert state.apply(1, *record) == change


def test_snapshots_do_not_change_afterwards_and_pickle() -> None:
    state = ConfigState()
    state.apply(0, *connector(k="1"))
    before = state.snapshot()
    assert state.snapshot() is before
    state.apply(1, *connector(k="2"))
    state.apply(2, *connector("b"))
    assert before.names() == ["a"]
    assert before.connectors["a"].config == {"k": "1", "name": "a"}
    assert pickle.loads(pickle.dumps(before)) == before  # noqa: S301


def test_fencing_is_pending_from_each_commit_to_the_next_task_count() -> None:
    records = [connector(), task(0), codec.encode_commit("a", 1)]
    entry = state_of(*records).connectors["a"]
    assert (entry.task_count, entry.pending_fencing) == (None, True)
    records.append(codec.encode_task_count("a", 1))
    entry = state_of(*records).connectors["a"]
    assert (entry.task_count, entry.pending_fencing) == (1, False)
    entry = state_of(*records, codec.encode_commit("a", 0)).connectors["a"]
    assert (entry.task_count, entry.pending_fencing) == (1, True)


def test_a_task_count_outlives_its_connector_and_is_no_connector_itself() -> None:
    counted = [
        connector(),
        codec.encode_task_count("a", 3),
        codec.encode_connector("a", None),
        codec.encode_target_state("a", None),
    ]
    assert state_of(*counted).connectors == {}
    assert state_of(*counted, connector()).connectors["a"].task_count == 3
    compacted = [codec.encode_task_count("a", 3), codec.encode_commit("a", 2)]
    assert state_of(*compacted, connector()).connectors["a"].task_count == 3


def test_the_application_of_a_connector_is_known_also_if_compaction_has_left_an_older_record_of_it_only() -> None:
    placed = codec.encode_placed("a", "small-2")
    shared = {"sluiceway.application": "small"}
    for records in ([connector(**shared), placed], [placed, connector(**shared)]):
        entry = state_of(*records).connectors["a"]
        assert (entry.placed, entry.application) == ("small-2", "small-2")
    assert state_of(placed).connectors == {}
    gone = [connector(**shared), placed, codec.encode_placed("a", None), connector(**shared)]
    assert state_of(*gone).connectors["a"].application == "small"


def test_a_worker_with_a_default_application_finds_that_of_each_connector() -> None:
    state = ConfigState(Applications("small"))
    for offset, (key, value) in enumerate([connector("a"), connector("own", **{"spark.x": "1"})]):
        state.apply(offset, key, value)
    assert {name: entry.application for name, entry in state.snapshot().connectors.items()} == {"a": "small", "own": None}
