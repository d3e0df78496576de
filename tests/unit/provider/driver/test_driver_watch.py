"""Tests of the watch over a running driver."""

from __future__ import annotations

import logging

import pytest

from sluiceway.provider.driver.driver_watch import DrainAction, DriverWatch, drain_action
from support.eventually import eventually


@pytest.mark.parametrize(
    ("elapsed", "signalled", "step"),
    [
        (0, False, DrainAction.WAIT),
        (9.9, False, DrainAction.WAIT),
        (10, False, DrainAction.SIGTERM),
        (10, True, DrainAction.WAIT),
        (19.9, True, DrainAction.WAIT),
        (20, True, DrainAction.SIGKILL),
        (20, False, DrainAction.SIGKILL),
    ],
)
def test_a_driver_that_does_not_drain_gets_sigterm_and_then_sigkill(elapsed: float, signalled: bool, step: DrainAction) -> None:
    assert drain_action(elapsed, 10, signalled=signalled) is step


class Scene:
    """A watch with fakes; ``did`` records its actions."""

    def __init__(self) -> None:
        self.now = 0.0
        self.dag_paused = False
        self.jvm_gone = False
        self.airflow_down = False
        self.kafka_down = False
        self.in_cluster = False
        self.asked = 0
        self.did: list[str] = []
        self.watch = DriverWatch(
            "c",
            is_paused=self.is_paused,
            on_pause=self.on_pause,
            processes=lambda: None if self.in_cluster else self,
            submit_ended=lambda: self.jvm_gone,
            interval=0.01,
            drain_timeout=10,
            clock=lambda: self.now,
        )

    def is_paused(self) -> bool:
        self.asked += 1
        if self.airflow_down:
            raise ConnectionError("no API server")
        return self.dag_paused

    def on_pause(self) -> None:
        if self.kafka_down:
            raise ConnectionError("no broker")
        self.did.append("target")

    def refresh(self) -> None: ...

    def drain(self) -> bool:
        self.did.append("drain")
        return True

    def kill(self) -> int:
        self.did.append("kill")
        return 1

    def at(self, now: float) -> list[str]:
        self.now, self.did = now, []
        self.watch.check()
        return self.did


def test_nothing_happens_while_the_dag_runs() -> None:
    scene = Scene()
    assert scene.at(0) == scene.at(1000) == []
    assert not scene.watch.paused


def test_a_pause_without_pause_sync_sets_the_target_state_once_and_is_enforced() -> None:
    scene = Scene()
    scene.dag_paused = True
    assert [scene.at(now) for now in (0, 1, 2, 3, 9, 10, 12, 20)] == [[], [], ["target"], [], [], ["drain"], [], ["kill"]]
    assert scene.watch.paused


def test_a_resume_before_any_action_cancels_the_pause() -> None:
    scene = Scene()
    scene.dag_paused = True
    scene.at(0)
    scene.dag_paused = False
    assert scene.at(1) == scene.at(50) == []
    assert not scene.watch.paused
    scene.dag_paused = True
    assert [scene.at(now) for now in (60, 61, 62)] == [[], [], ["target"]], "a new pause has a new timeout"


def test_a_resume_after_the_target_state_was_set_does_not_cancel_the_pause() -> None:
    scene = Scene()
    scene.dag_paused = True
    scene.at(0)
    scene.at(2)
    scene.dag_paused = False
    assert scene.at(10) == ["drain"]
    assert scene.watch.paused


def test_a_target_state_that_could_not_be_written_is_written_at_the_next_check() -> None:
    scene = Scene()
    scene.dag_paused = scene.kafka_down = True
    scene.at(0)
    with pytest.raises(ConnectionError):
        scene.at(2)
    scene.kafka_down = False
    assert scene.at(3) == ["target"]


def test_in_cluster_mode_only_the_target_state_is_set() -> None:
    scene = Scene()
    scene.in_cluster = scene.dag_paused = True
    scene.at(0)
    assert scene.at(2) == ["target"]
    assert scene.at(50) == []


def test_processes_that_outlive_the_jvm_are_killed_after_a_delay() -> None:
    scene = Scene()
    scene.jvm_gone = True
    assert [scene.at(now) for now in (0, 4.9, 5)] == [[], [], ["kill"]]


def test_an_outage_of_airflow_is_logged_and_the_watch_continues(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.airflow_down = True
    with caplog.at_level(logging.INFO), scene.watch as watch:
        eventually(lambda: scene.asked > 5, what="several checks")
        scene.dag_paused, scene.airflow_down = True, False
        eventually(lambda: watch.paused)
        scene.now = 2
        eventually(lambda: scene.did == ["target"])
    began, ended = [record for record in caplog.records if "Cannot check the driver" in record.message]
    assert (began.levelname, bool(began.exc_info), ended.levelname) == ("WARNING", False, "INFO")
    assert "over after" in ended.message
