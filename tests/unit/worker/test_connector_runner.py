"""A connector on its driver: start, restarts, changed task configs, failures, calls that hang, and the statuses published."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from unittest.mock import MagicMock

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.config.providers import ConfigData, ConfigProvider
from sluiceway.errors import ConnectError, FencedError
from sluiceway.herder.restart_policy import RestartPolicy
from sluiceway.storage.intervals import IntervalEntry, IntervalState, ledger_name
from sluiceway.storage.model import State, Status, TargetState
from sluiceway.telemetry.tracing import using
from sluiceway.worker import connector_runner, connector_thread, task_table, task_watch, worker_connector
from sluiceway.worker.connect_workers import RunByConnectError
from sluiceway.worker.connector_runner import RunnerOutcome
from sluiceway.worker.task_watch import Slot
from support.runner_bench import NAME, WATCHED, RunnerBench, Script, WatchedConnector

Make = Callable[..., RunnerBench]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make benches with short time limits."""
    monkeypatch.setattr(task_table, "_KILL_SECONDS", 0.3)
    monkeypatch.setattr(worker_connector, "_BACKOFF_SECONDS", (0.05, 0.1))
    made: list[RunnerBench] = []

    def bench(*arguments: object, **settings: object) -> RunnerBench:
        made.append(RunnerBench(*arguments, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield bench
    for each in made:
        each.close()


def commits(bench: RunnerBench) -> list[dict[str, str]]:
    entry = bench.store.snapshot().entry(NAME)
    assert entry is not None
    return [dict(config) for config in entry.task_configs]


def last_command(bench: RunnerBench) -> tuple[str, tuple[int, ...]]:
    return bench.channel.commands[-1]


# Restarts.


class Expiring(ConfigProvider):
    """Returns a new value at each call, with a TTL of one second."""

    calls = 0

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        Expiring.calls += 1
        return ConfigData(dict.fromkeys(keys, f"secret-{Expiring.calls}"), ttl=1000)


EXPIRING = {"config_providers": "expiring", "config_providers_expiring_class": f"{__name__}.Expiring"}


def test_expired_secrets_restart_the_connector_with_its_tasks(make: Make) -> None:
    bench = make(**EXPIRING).start(password="${expiring::x}")
    bench.eventually_running()
    bench.eventually(lambda: min(bench.tasks.started[task] for task in (0, 1)) >= 2, "both tasks again")
    bench.eventually(lambda: bench.script.calls["start"] >= 2, "the connector again")
    assert ("connector", State.RESTARTING, None) in bench.channel.published


def test_a_connector_with_config_action_reload_none_keeps_running(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_thread, "_MIN_TTL_SECONDS", 0.0)
    monkeypatch.setattr(Expiring, "get", lambda _self, _path, keys: ConfigData(dict.fromkeys(keys, "s"), ttl=0))
    bench = make(**EXPIRING).start(password="${expiring::x}", config_action_reload="none")
    bench.eventually_running()
    assert bench.runner._connector._instance is not None
    assert bench.runner._connector._instance.thread.valid_until == float("inf")
    assert not bench.runner._connector.expired


def test_a_plain_restart_does_not_restart_tasks(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.restart()
    bench.eventually(lambda: bench.script.calls["task_configs"] == 2, "the connector is asked for its tasks again")
    bench.eventually_state("connector", State.RUNNING)
    assert (bench.script.calls["start"], bench.script.calls["stop"]) == (2, 1)
    assert bench.tasks.started == {0: 1, 1: 1}
    assert ("connector", State.RESTARTING, None) in bench.channel.published


def test_a_restart_with_tasks_restarts_all_of_them(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.restart(include_tasks=True)
    bench.eventually(lambda: bench.tasks.started == {0: 2, 1: 2}, "both tasks again")
    bench.eventually_state("connector", State.RUNNING)
    assert bench.script.calls["start"] == 2
    assert ("0", State.RESTARTING, None) in bench.channel.published


def test_a_restart_of_failed_tasks_restarts_no_other(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.tasks.end(1, failed=True, trace="boom")
    bench.eventually_state("1", State.FAILED)
    bench.restart(include_tasks=True, only_failed=True)
    bench.eventually(lambda: bench.tasks.started[1] == 2, "the failed task again")
    assert (bench.tasks.started, bench.script.calls["start"]) == ({0: 1, 1: 2}, 1)


def test_a_task_that_has_reported_failed_is_restarted_even_before_its_loop_has_ended(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.tasks.deaf.add(1)
    bench.channel.states["1"] = State.FAILED  # written by the task itself, before Spark returns its result
    bench.restart(include_tasks=True, only_failed=True)
    bench.eventually(lambda: ("stop", (1,)) in bench.channel.commands, "the stop of the failed task")
    bench.tasks.end(1, failed=True, trace="boom")
    bench.eventually(lambda: bench.tasks.started[1] == 2, "the failed task again")
    bench.eventually_state("1", State.RESTARTING)
    assert bench.tasks.started == {0: 1, 1: 2}


def test_a_single_task_is_restarted_in_any_state(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.restart(task=0)
    bench.eventually(lambda: bench.tasks.started[0] == 2, "task 0 again")
    assert (bench.tasks.started, bench.script.calls["start"]) == ({0: 2, 1: 1}, 1)


@pytest.mark.parametrize(("policy", "state"), [("warn", State.RUNNING), ("fail", State.FAILED)])
def test_a_connector_that_starts_names_its_unknown_keys(
    policy: str, state: State, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(errors_unknown_keys=policy).start(tasks_mx="3")
    bench.eventually_state("connector", state)
    text = "Nothing defines the key tasks.mx, so it has no effect. Did you mean tasks.max?"
    assert text in (caplog.text if policy == "warn" else bench.channel.traces["connector"] or "")


def test_a_connector_that_waits_runs_and_shows_why(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    assert bench.script.connector is not None
    bench.script.connector.context.waiting("There is no table x.", 60)
    bench.eventually(lambda: "There is no table x." in (bench.channel.traces["connector"] or ""), "the reason")
    assert bench.channel.states["connector"] is State.RUNNING
    bench.script.connector.context.waiting()
    bench.eventually(lambda: bench.channel.traces["connector"] is None, "the end of the wait")


def test_a_micro_batch_of_a_connector_that_waits_fails(make: Make) -> None:
    bench = make(Script(hangs={"task_configs"}), bounded=True).start()
    bench.eventually(lambda: bench.script.calls["task_configs"], "the request for task configs")
    assert bench.script.connector is not None
    bench.script.connector.context.waiting("There is no table x.")
    bench.script.tasks.clear()
    bench.script.release.set()
    bench.ended()
    assert (bench.runner.failure or "").endswith("not all that the config names exists. There is no table x.")
    assert not bench.runner.batch_ended
    assert bench.channel.states["connector"] is State.FAILED


def test_a_restart_starts_a_connector_that_failed_to_start_with_its_tasks(make: Make) -> None:
    bench = make(Script(fails={"start": ConnectError("no database")})).start()
    bench.eventually_state("connector", State.FAILED)
    assert "no database" in (bench.channel.traces["connector"] or "")
    assert not bench.tasks.started
    del bench.script.fails["start"]
    bench.restart()
    bench.eventually_running()


# Failures.


def test_a_failed_task_stays_failed_and_the_others_keep_running(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.tasks.end(0, failed=True, trace="boom")
    bench.eventually_state("0", State.FAILED)
    bench.eventually(lambda: len(bench.channel.published) > 12, "some heartbeats")
    assert bench.channel.traces["0"] == "boom"
    assert (bench.tasks.started, bench.channel.states["connector"]) == ({0: 1, 1: 1}, State.RUNNING)
    assert not bench.tasks.running[1].done()


def test_the_restart_policy_restarts_a_failed_task_until_its_budget_is_used_up(make: Make) -> None:
    bench = make().start(
        sluiceway_task_restart_policy="on-failure",
        sluiceway_task_restart_max_restarts="2",
        sluiceway_task_restart_backoff_initial_ms="1",
    )
    bench.eventually_running()
    for turn in (1, 2, 3):
        bench.eventually(lambda turn=turn: bench.tasks.started[0] == turn, f"start {turn}")
        bench.tasks.end(0, failed=True, trace=f"boom {turn}")
    bench.eventually_state("0", State.FAILED)
    assert ("0", State.RESTARTING, "boom 2") in bench.channel.published
    trace = bench.channel.traces["0"] or ""
    assert "Given up after 2 restarts" in trace
    assert "boom 3" in trace
    assert bench.tasks.started == {0: 3, 1: 1}


def test_a_requested_restart_resets_a_failed_tasks_restart_budget(make: Make) -> None:
    bench = make().start(
        sluiceway_task_restart_policy="on-failure",
        sluiceway_task_restart_max_restarts="1",
        sluiceway_task_restart_backoff_initial_ms="1",
    )
    bench.eventually_running()
    bench.tasks.end(0, failed=True)
    bench.eventually(lambda: bench.tasks.started[0] == 2, "the restart")
    bench.tasks.end(0, failed=True)
    bench.eventually_state("0", State.FAILED)
    bench.restart(task=0)
    bench.eventually(lambda: bench.tasks.started[0] == 3, "the requested restart")
    bench.tasks.end(0, failed=True)
    bench.eventually(lambda: bench.tasks.started[0] == 4, "an automatic restart")


@pytest.mark.parametrize("result", [{"failed": True, "lost": True}, {}], ids=["transactional id taken over", "ended by itself"])
def test_a_lost_task_is_started_again(make: Make, monkeypatch: pytest.MonkeyPatch, result: dict[str, bool]) -> None:
    quick = RestartPolicy(max_restarts=5, backoff_initial=0.01, backoff_max=1.0, reset_after=300.0)
    monkeypatch.setattr(task_table, "CRASHED_PROCESS_POLICY", quick)
    bench = make().start()
    bench.eventually_running()
    bench.tasks.end(0, **result)
    bench.eventually(lambda: bench.tasks.started[0] == 2, "a second start")
    assert State.FAILED not in [state for who, state, _ in bench.channel.published if who == "0"]


@pytest.fixture
def quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_table, "_WATCH_SECONDS", 0.01)
    monkeypatch.setattr(task_watch, "_WITHOUT_SLOT_SECONDS", 0.05)
    monkeypatch.setattr(task_table, "LOST_EXECUTOR_POLICY", RestartPolicy(10_000, 0.01, 0.01, 300.0))


def test_each_start_after_a_loss_has_a_higher_generation_which_ends_the_lost_process(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    assert [bench.tasks.assignments[number].spec.generation for number in (0, 1)] == [7, 7]
    bench.tasks.lose(0, crashed=False)
    bench.eventually(lambda: bench.tasks.started[0] == 2, "a second start")
    assert [bench.tasks.assignments[number].spec.generation for number in (0, 1)] == [8, 7]
    lost = [trace for who, state, trace in bench.channel.published if (who, state) == ("0", State.UNASSIGNED) and trace]
    assert lost == ["The task was lost and will be started again: Python worker exited unexpectedly"]
    bench.restart(task=1)
    bench.eventually(lambda: bench.channel.states["1"] is State.RESTARTING, "the restart of the other")
    assert bench.channel.generations == {0: 8, 1: 8}


def test_running_tasks_are_stopped_with_the_generations_they_run_with(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.tasks.lose(0, crashed=False)
    bench.eventually(lambda: bench.tasks.started[0] == 2, "a second start")
    bench.tasks.deaf = {0, 1}
    bench.store.put_connector(NAME, {"name": NAME, "connector.class": WATCHED, "tasks.max": "2", "x": "y"})
    bench.eventually(lambda: ("stop", (1,)) in bench.channel.commands, "the stop commands")
    bench.eventually(lambda: bench.channel.generations == {0: 8, 1: 7}, f"commands: {bench.channel.generations}")


@pytest.mark.usefixtures("quick_watch")
def test_losses_through_no_fault_of_the_task_are_never_given_up(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    for turn in range(1, 9):
        bench.eventually(lambda turn=turn: bench.tasks.started[0] == turn, f"start {turn}")
        if turn % 2:
            bench.tasks.lose(0, crashed=False)
        else:
            bench.tasks.end(0, lost=True, second_attempt=True, trace="Spark lost it")
    bench.eventually(lambda: bench.tasks.started[0] == 9, "start 9")
    assert State.FAILED not in [state for who, state, _ in bench.channel.published if who == "0"]


def test_a_process_that_crashes_six_times_in_a_row_fails(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_table, "CRASHED_PROCESS_POLICY", RestartPolicy(5, 0.01, 0.01, 300.0))
    bench = make().start()
    bench.eventually_running()
    for turn in range(1, 7):
        bench.eventually(lambda turn=turn: bench.tasks.started[0] == turn, f"start {turn}")
        bench.tasks.lose(0)
    bench.eventually_state("0", State.FAILED)
    assert "Python worker exited unexpectedly" in (bench.channel.traces["0"] or "")


@pytest.mark.usefixtures("quick_watch")
def test_a_task_that_waits_for_a_slot_is_unassigned_and_its_connector_runs(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    bench.tasks.slots[1] = Slot.NONE
    bench.start()
    bench.eventually(lambda: (bench.channel.traces.get("1") or "") == "Waits for a slot: get more", "the trace")
    assert (bench.channel.states["1"], bench.channel.states["connector"]) == (State.UNASSIGNED, State.RUNNING)
    bench.eventually(lambda: caplog.text.count("Task(s) 1 wait for a slot: get more") == 1, "the warning")
    bench.tasks.deaf = {1}
    bench.store.put_target_state(NAME, TargetState.PAUSED)
    bench.ended()
    assert bench.tasks.cancelled == [1], "it is not waited for"
    assert bench.channel.states["1"] is State.PAUSED


@pytest.mark.usefixtures("quick_watch")
def test_a_task_that_spark_has_queued_again_is_canceled_and_started_again(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.tasks.slots[0] = Slot.LOST
    bench.eventually(lambda: bench.tasks.cancelled, "the cancellation")
    bench.tasks.slots[0] = Slot.HELD
    bench.eventually(lambda: bench.tasks.started[0] >= 2, "a second start")
    assert ("0", State.UNASSIGNED, f"{LOST}Spark lost the task's executor or its host") in bench.channel.published


@pytest.mark.usefixtures("quick_watch")
def test_a_status_that_a_task_writes_after_its_removal_is_removed_too(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.channel.states["7"] = State.RUNNING
    bench.eventually(lambda: "7" not in bench.channel.states, "the removal")
    assert {"0", "1"} <= set(bench.channel.states)


LEAVING = "Its executor 3 leaves"


@pytest.mark.usefixtures("quick_watch")
def test_a_task_leaves_a_decommissioned_executor(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    before = len(bench.channel.published)
    bench.tasks.leaving[0] = LEAVING
    bench.eventually(lambda: bench.tasks.started[0] == 2, "a second start")
    assert (bench.tasks.started, bench.tasks.cancelled) == ({0: 2, 1: 1}, []), "it drains, and the other keeps running"
    told = [each for each in bench.channel.published[before:] if each[0] != "connector"]
    assert told == [("0", State.UNASSIGNED, None), ("0", State.UNASSIGNED, LEAVING)], "the command, then the reason"
    assert bench.tasks.assignments[0].spec.generation == 7


@pytest.mark.usefixtures("quick_watch")
def test_a_task_that_does_not_drain_is_killed_and_leaves_with_a_higher_generation(make: Make) -> None:
    bench = make()
    bench.tasks.deaf, bench.tasks.undying = {0}, {0}
    bench.start()
    bench.eventually_running()
    bench.tasks.leaving[0] = LEAVING
    bench.eventually(lambda: bench.tasks.started[0] == 2, "a second start")
    assert (bench.tasks.cancelled, bench.tasks.assignments[0].spec.generation) == ([0], 8)


def test_leaving_an_executor_restores_no_restart_budget(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_table, "_WATCH_SECONDS", 0.01)
    monkeypatch.setattr(task_table, "CRASHED_PROCESS_POLICY", RestartPolicy(1, 0.01, 0.01, 300.0))
    bench = make().start()
    bench.eventually_running()
    bench.tasks.lose(0)
    bench.eventually(lambda: bench.tasks.started[0] == 2, "a start after the crash")
    bench.tasks.leaving[0] = LEAVING
    bench.eventually(lambda: bench.tasks.started[0] == 3, "a start elsewhere")
    bench.tasks.lose(0)
    bench.eventually_state("0", State.FAILED)


LOST = "The task was lost and will be started again: "


@pytest.mark.usefixtures("quick_watch")
@pytest.mark.parametrize("broken", [False, True])
def test_a_silent_task_is_started_again_unless_the_driver_cannot_read_either(make: Make, broken: bool) -> None:
    bench = make(sluiceway_heartbeat_timeout_ms="1000")
    bench.channel.broken = broken
    bench.channel.heard = {number: Status(State.RUNNING, "w", 7, timestamp=1) for number in (0, 1)}
    bench.start()
    bench.eventually_running()
    stop = threading.Event()

    def beat() -> None:
        count = 1
        while not stop.wait(0.1):
            count += 1
            bench.channel.heard = {**bench.channel.heard, 1: Status(State.RUNNING, "w", 7, timestamp=count)}

    threading.Thread(target=beat, daemon=True).start()
    try:
        if broken:
            assert not stop.wait(1.5)
            assert bench.tasks.started == {0: 1, 1: 1}
            return
        bench.eventually(lambda: bench.tasks.started[0] == 2, "a second start")
        assert (bench.tasks.cancelled, bench.tasks.started) == ([0], {0: 2, 1: 1})
        assert any("no heartbeat for 1 s" in (trace or "") for _, _, trace in bench.channel.published)
    finally:
        stop.set()


def test_without_an_application_tasks_are_unassigned_with_the_reason(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.tasks.over = True
    for number in (0, 1):
        bench.tasks.lose(number)
    bench.eventually_state("0", State.UNASSIGNED)
    bench.eventually(lambda: "application has ended" in (bench.channel.traces["1"] or ""), "the reason")
    bench.runner.leave("The Spark application has ended: killed.")
    bench.ended()
    for who in ("connector", "0", "1"):
        assert (bench.channel.states[who], bench.channel.traces[who]) == (
            State.UNASSIGNED,
            "The Spark application has ended: killed.",
        )
    assert bench.tasks.started == {0: 1, 1: 1}


def test_an_error_reported_by_the_connector_fails_it_and_its_tasks_keep_running(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    assert bench.script.connector is not None
    bench.script.connector.context.raise_error(ConnectError("lost sight of the source"))
    bench.eventually_state("connector", State.FAILED)
    bench.script.connector.context.request_task_reconfiguration()
    bench.restart(task=0)
    bench.eventually(lambda: bench.tasks.started[0] == 2, "a task's restart")
    assert bench.channel.states["connector"] is State.FAILED
    assert bench.script.calls["task_configs"] == 1
    assert not bench.tasks.running[1].done()


def test_a_reported_error_stays_visible_after_an_earlier_task_configs_call_returns(make: Make) -> None:
    bench = make(Script(hangs={"task_configs"})).start()
    bench.eventually(lambda: bench.script.calls["task_configs"] == 1, "the task_configs call")
    assert bench.script.connector is not None
    bench.script.connector.context.raise_error(ConnectError("lost sight of the source"))
    bench.eventually_state("connector", State.FAILED)
    bench.script.release.set()
    bench.eventually(lambda: bench.tasks.started == {0: 1, 1: 1}, "the tasks")
    count = len(bench.channel.published)
    bench.eventually(lambda: len(bench.channel.published) > count + 2, "some heartbeats")
    assert bench.channel.states["connector"] is State.FAILED


# Changed task configs.


def test_only_tasks_whose_config_changed_are_restarted(make: Make) -> None:
    bench = make(Script(tasks=[{"n": "0"}, {"n": "1"}, {"n": "2"}])).start(tasks_max="3")
    bench.eventually_running()
    bench.script.tasks = [{"n": "0"}, {"n": "changed"}]
    assert bench.script.connector is not None
    bench.script.connector.context.request_task_reconfiguration()
    bench.eventually(lambda: bench.tasks.started[1] == 2, "the changed task again")
    bench.eventually_state("2", None)
    assert bench.tasks.started == {0: 1, 1: 2, 2: 1}
    assert not bench.tasks.running[0].done()
    assert [config["n"] for config in commits(bench)] == ["0", "changed"]
    bench.script.tasks = [{"n": "0"}, {"n": "changed"}, {"n": "new"}]
    bench.script.connector.context.request_task_reconfiguration()
    bench.eventually(lambda: bench.tasks.started[2] == 2, "a new task")
    assert bench.tasks.started == {0: 1, 1: 2, 2: 2}
    assert len(commits(bench)) == 3


def test_all_tasks_are_restarted_if_earlier_ones_must_be_fenced(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    fenced: list[list[int]] = []
    bench = make()
    monkeypatch.setattr(connector_runner, "needs_fencing", lambda *_: True)
    monkeypatch.setattr(
        connector_runner,
        "fence_earlier_tasks",
        lambda *_: fenced.append([number for number, future in bench.tasks.running.items() if not future.done()]),
    )
    bench.start()
    bench.eventually_running()
    bench.script.tasks = [{"n": "0"}, {"n": "changed"}]
    assert bench.script.connector is not None
    bench.script.connector.context.request_task_reconfiguration()
    bench.eventually(lambda: bench.tasks.started == {0: 2, 1: 2}, "both tasks again")
    assert fenced == [[], []]  # no task ran during the fencing


def test_tasks_fail_if_earlier_ones_cannot_be_fenced_and_a_restart_starts_them(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ConnectError("not allowed to fence")

    monkeypatch.setattr(connector_runner, "fence_earlier_tasks", refuse)
    bench = make().start()
    for number in ("0", "1"):
        bench.eventually_state(number, State.FAILED)
        assert "not allowed to fence" in (bench.channel.traces[number] or "")
    bench.eventually_state("connector", State.RUNNING)
    assert not bench.tasks.started
    monkeypatch.setattr(connector_runner, "fence_earlier_tasks", lambda *_: None)
    bench.restart(include_tasks=True, only_failed=True)
    bench.eventually(lambda: bench.tasks.started == {0: 1, 1: 1}, "the tasks")


def test_tasks_keep_running_while_task_configs_fails_and_is_retried(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.script.fails["task_configs"] = ConnectError("cannot list the tables")
    assert bench.script.connector is not None
    bench.script.connector.context.request_task_reconfiguration()
    bench.eventually_state("connector", State.FAILED)
    assert bench.tasks.started == {0: 1, 1: 1}
    bench.script.tasks = [{"n": "0"}]
    del bench.script.fails["task_configs"]
    bench.eventually_state("connector", State.RUNNING)
    bench.eventually_state("1", None)


def test_a_connector_with_too_many_tasks_fails_and_no_task_is_started(make: Make) -> None:
    bench = make().start(tasks_max="1")
    bench.eventually_state("connector", State.FAILED)
    assert "has generated 2 tasks, which is greater than 1" in (bench.channel.traces["connector"] or "")
    assert (dict(bench.tasks.started), commits(bench)) == ({}, [])
    bench.configure(tasks_max="1", tasks_max_enforce="false")
    bench.eventually_running()


# Calls and tasks that hang.


@pytest.mark.parametrize("call", ["start", "task_configs"])
def test_a_connector_that_hangs_still_sends_heartbeats_and_can_be_deleted(make: Make, call: str) -> None:
    bench = make(Script(hangs={call})).start()
    bench.eventually(lambda: bench.script.calls[call] == 1, "the call")
    count = len(bench.channel.published)
    bench.eventually(lambda: len(bench.channel.published) > count + 2, "heartbeats while it hangs")
    assert bench.channel.states["connector"] is (State.UNASSIGNED if call == "start" else State.RUNNING)
    bench.store.remove_connector(NAME)
    bench.ended()
    assert (bench.runner.outcome, bench.channel.states) == (RunnerOutcome.DONE, {})


def test_a_connector_that_hangs_in_start_accepts_another_config(make: Make) -> None:
    bench = make(Script(hangs={"start"})).start()
    bench.eventually(lambda: bench.script.calls["start"] == 1, "the call")
    bench.script.hangs.clear()
    bench.configure(other="value")
    bench.eventually_running()


def test_a_connector_that_hangs_in_stop_does_not_keep_its_driver_running(make: Make) -> None:
    bench = make(Script(hangs={"stop"})).start()
    bench.eventually_running()
    bench.store.put_target_state(NAME, TargetState.STOPPED)
    bench.ended()
    assert bench.channel.states == {"connector": State.STOPPED}


def test_a_task_that_does_not_stop_is_killed_and_its_status_has_the_reason(make: Make) -> None:
    bench = make()
    bench.tasks.deaf = {1}
    bench.start()
    bench.eventually_running()
    bench.runner.leave()
    bench.ended()
    assert bench.tasks.cancelled == [1]
    assert bench.channel.states["1"] is State.UNASSIGNED
    assert "task.shutdown.graceful.timeout.ms (0.2 s)" in (bench.channel.traces["1"] or "")
    assert "its process was ended" in (bench.channel.traces["1"] or "")
    assert bench.channel.traces["0"] is None


def test_a_task_that_cannot_be_killed_does_not_block_its_driver(make: Make) -> None:
    bench = make()
    bench.tasks.deaf, bench.tasks.undying = {1}, {1}
    bench.start()
    bench.eventually_running()
    bench.store.put_target_state(NAME, TargetState.PAUSED)
    bench.ended()
    assert bench.channel.states == {"connector": State.PAUSED, "0": State.PAUSED, "1": State.PAUSED}
    assert "could not be ended" in (bench.channel.traces["1"] or "")


def test_heartbeats_continue_while_tasks_are_stopping(make: Make) -> None:
    bench = make(task_shutdown_graceful_timeout_ms="600")
    bench.tasks.deaf = {0}
    bench.start()
    bench.eventually_running()
    before = len([each for each in bench.channel.published if each[0] == "connector"])
    bench.runner.leave()
    bench.ended()
    beats = [state for who, state, _ in bench.channel.published if who == "connector"][before:]
    assert beats.count(State.RUNNING) >= 3


# Takeover and shutdown.


def test_a_fenced_driver_kills_its_tasks_and_publishes_nothing_more(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.channel.fenced = FencedError
    bench.ended()
    assert bench.runner.outcome is RunnerOutcome.FENCED
    assert sorted(bench.tasks.cancelled) == [0, 1]
    assert bench.channel.states["connector"] is State.RUNNING


@pytest.mark.parametrize("deaf", [set(), {1}])
def test_tasks_commit_and_end_before_kafka_connect_gets_their_connector(make: Make, deaf: set[int]) -> None:
    bench = make(task_shutdown_graceful_timeout_ms="200").start()
    bench.eventually_running()
    published = len(bench.channel.published)
    bench.tasks.deaf = deaf
    bench.channel.fenced = RunByConnectError
    bench.ended()
    assert bench.runner.outcome is RunnerOutcome.FENCED
    assert bench.channel.commands[-2:] == [("release", (0, 1)), ("forget", ())]
    assert set(bench.tasks.cancelled) == deaf
    assert bench.runner.records == 5 * (2 - len(deaf))
    assert len(bench.channel.published) == published


def test_tasks_end_at_once_if_they_cannot_be_asked_to_commit(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make().start()
    bench.eventually_running()
    monkeypatch.setattr(bench.channel, "release_tasks", MagicMock(side_effect=ConnectError("no broker answers")))
    bench.channel.fenced = RunByConnectError
    bench.ended()
    assert bench.runner.outcome is RunnerOutcome.FENCED
    assert sorted(bench.tasks.cancelled) == [0, 1]


def test_a_failed_task_stays_failed_when_the_driver_stops(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    bench.tasks.end(0, failed=True, trace="boom")
    bench.eventually_state("0", State.FAILED)
    bench.runner.leave()
    bench.ended()
    assert bench.channel.states == {"connector": State.UNASSIGNED, "0": State.FAILED, "1": State.UNASSIGNED}
    assert bench.channel.traces["0"] == "boom"


def test_a_failure_followed_by_a_successful_restart_does_not_fail_the_micro_batch(make: Make) -> None:
    bench = make(bounded=True).start()
    bench.eventually_running()
    bench.tasks.end(0, failed=True, trace="boom")
    bench.eventually_state("0", State.FAILED)
    bench.restart(task=0)
    bench.eventually(lambda: bench.tasks.started[0] == 2, "the restart")
    for number in (0, 1):
        bench.tasks.end(number)
    bench.ended()
    assert bench.runner.outcome is RunnerOutcome.DONE
    assert bench.channel.states == {"connector": State.UNASSIGNED, "0": State.UNASSIGNED, "1": State.UNASSIGNED}


def test_a_micro_batch_with_a_failed_task_fails_with_its_reason(make: Make) -> None:
    bench = make(bounded=True).start()
    bench.eventually_running()
    bench.tasks.end(0, failed=True, trace="boom\n  at a line")
    bench.tasks.end(1)
    bench.ended()
    assert (bench.runner.outcome, bench.channel.states["0"]) == (RunnerOutcome.FAILED, State.FAILED)
    assert bench.runner.failure == f"Connector {NAME}: task 0 failed: boom"


def test_a_micro_batch_ends_with_its_tasks(make: Make) -> None:
    bench = make(bounded=True).start()
    bench.eventually_running()
    for number in (0, 1):
        bench.tasks.end(number, records=3)
    bench.ended()
    assert (bench.runner.outcome, bench.channel.states["connector"]) == (RunnerOutcome.DONE, State.UNASSIGNED)
    assert (bench.runner.batch_ended, bench.runner.records) == (True, 6)


@pytest.mark.parametrize("trait", ["interval_in_order", "interval_by_timestamp"])
@pytest.mark.parametrize(("bounded", "in_order"), [(True, True), (True, False), (False, True)])
def test_a_micro_batch_of_a_log_moves_the_interval_that_runs(
    make: Make, monkeypatch: pytest.MonkeyPatch, bounded: bool, in_order: bool, trait: str
) -> None:
    monkeypatch.setattr(WatchedConnector, trait, in_order)
    bench = make(bounded=bounded)
    states = [(0, IntervalState.DONE), (10, IntervalState.RUNNING), (20, IntervalState.FAILED)]
    entries = [IntervalEntry(Interval(start, start + 10), state, attempt=3, updated=start) for start, state in states]
    bench.channel.offsets.put(ledger_name(NAME), [entry.update() for entry in entries])
    bench.start()
    bench.eventually_running()
    expected = IntervalRun(NAME, Interval(10, 20), 3) if bounded and in_order else None
    assert [IntervalRun.of(each.spec.config) for each in bench.tasks.assignments.values()] == [expected, expected]
    assert IntervalRun.of(commits(bench)[0]) is None, "a task config that each run changes would be one more record in Kafka"


def test_a_micro_batch_that_drains_has_not_ended(make: Make) -> None:
    bench = make(bounded=True).start()
    bench.eventually_running()
    bench.runner.leave()
    bench.ended()
    assert (bench.runner.outcome, bench.runner.batch_ended) == (RunnerOutcome.DONE, False)


def test_a_micro_batch_with_an_invalid_config_fails(make: Make) -> None:
    bench = make(bounded=True).start(sluiceway_task_restart_backoff_max_ms="soon")
    bench.ended()
    assert (bench.runner.outcome, bench.channel.states["connector"]) == (RunnerOutcome.FAILED, State.FAILED)
    assert bench.runner.failure == f"Connector {NAME} failed; see its status for the trace."


def test_a_micro_batch_whose_connector_cannot_start_fails(make: Make) -> None:
    bench = make(Script(fails={"start": ConnectError("no database")}), bounded=True).start()
    bench.ended()
    assert (bench.runner.outcome, bench.channel.states["connector"]) == (RunnerOutcome.FAILED, State.FAILED)


@pytest.mark.parametrize("reference", ["${nope:x}", "${env:CONNECTOR_THAT_IS_NOT_SET}"])
def test_a_connector_whose_reference_has_no_value_fails_before_it_is_made(make: Make, reference: str) -> None:
    env = {"config_providers": "env", "config_providers_env_class": "EnvVarConfigProvider"}
    bench = make(**env).start(file=reference)
    bench.eventually_state("connector", State.FAILED)
    assert f"file: {reference} " in str(bench.channel.traces["connector"])
    assert bench.script.calls["start"] == 0


def test_in_standalone_mode_a_paused_connector_keeps_its_tasks_and_is_resumed_in_place(make: Make) -> None:
    bench = make(exit_when_idle=False).start()
    bench.eventually_running()
    bench.store.put_target_state(NAME, TargetState.PAUSED)
    bench.eventually_state("connector", State.PAUSED)
    assert ("pause", (0, 1)) in bench.channel.commands
    bench.restart(task=1)
    bench.eventually(lambda: bench.tasks.started[1] == 2, "a restart while paused")
    assert last_command(bench) == ("pause", (1,))
    bench.store.put_target_state(NAME, TargetState.STARTED)
    bench.eventually_state("connector", State.RUNNING)
    assert last_command(bench) == ("run", (0, 1))
    assert (bench.tasks.started, bench.script.calls["start"]) == ({0: 1, 1: 2}, 1)


def test_the_mark_of_a_move_restarts_nothing(make: Make) -> None:
    bench = make().start()
    bench.eventually_running()
    marks: list[dict[str, str]] = [{"sluiceway_migrate_state": "RUNNING"}, {"sluiceway_moved_to": "x"}]
    for mark in marks:
        bench.configure(None, **mark)
        bench.restart(task=1)  # served after the change of the config
        bench.eventually(lambda: not bench.store.take_restart_requests(), "the restart")
    bench.eventually(lambda: bench.tasks.started[1] == 3, "two restarts")
    assert (bench.tasks.started[0], bench.script.calls["start"]) == (1, 1)


def test_a_driver_stays_for_a_stopped_connector_that_a_move_will_start(make: Make) -> None:
    bench = make().start(TargetState.STOPPED, sluiceway_migrate_state="RUNNING")
    bench.eventually_state("connector", State.STOPPED)
    assert bench.script.calls["start"] == 0
    bench.store.put_target_state(NAME, TargetState.STARTED)
    bench.eventually_running()
    bench.configure()
    bench.store.put_target_state(NAME, TargetState.STOPPED)
    bench.ended()
    assert bench.runner.outcome is RunnerOutcome.DONE


@pytest.mark.parametrize("mark", [{"sluiceway_moved_to": "http://there:8083"}, {}, {"sluiceway_migrate_state": "PAUSED"}])
def test_a_driver_ends_when_its_stopped_connector_has_moved(make: Make, mark: dict[str, str]) -> None:
    bench = make().start(sluiceway_migrate_state="RUNNING")
    bench.eventually_running()
    bench.store.put_target_state(NAME, TargetState.STOPPED)
    bench.eventually_state("connector", State.STOPPED)
    assert bench.runner.is_alive()
    bench.configure(TargetState.STOPPED, **mark)
    bench.ended()
    assert (bench.runner.outcome, bench.channel.states["connector"]) == (RunnerOutcome.DONE, State.STOPPED)


def test_each_change_of_a_connectors_life_is_a_span(make: Make) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with using(provider):
        bench = make(exit_when_idle=False).start()
        bench.eventually_running()
        bench.restart()
        bench.eventually(lambda: bench.script.calls["start"] == 2, "the restart")
        bench.eventually_state("connector", State.RUNNING)
        bench.store.put_target_state(NAME, TargetState.PAUSED)
        bench.eventually_state("connector", State.PAUSED)
        bench.store.put_target_state(NAME, TargetState.STARTED)
        bench.eventually_state("connector", State.RUNNING)
        bench.store.remove_connector(NAME)
        bench.eventually(lambda: not bench.runner.is_alive(), "the runner's end")
    found = [span.name for span in exporter.get_finished_spans() if span.name.startswith("connector ")]
    assert found == ["connector begin", "connector restart", "connector pause", "connector resume", "connector delete"]
