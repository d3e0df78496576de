"""The end of a Spark application, and the loss of its executors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.spark.application_watch import LostExecutors, application_ended


class World:
    """Slots, waiting tasks and time, as a test sets them."""

    def __init__(self) -> None:
        self.slots: int | None = 0
        self.tasks = 1
        self.now = 0.0
        self.lost = LostExecutors(60.0, clock=lambda: self.now)

    def after(self, seconds: float, slots: int | None) -> bool:
        self.now += seconds
        self.slots = slots
        return self.lost(self.slots, self.tasks)


def test_an_application_without_executors_is_lost_after_the_timeout() -> None:
    world = World()
    assert [world.after(seconds, slots) for seconds, slots in [(0, 2), (10, 0), (60, 0), (1, 0)]] == [False, False, False, True]


def test_an_application_that_never_had_executors_may_still_get_some() -> None:
    world = World()
    assert not any(world.after(100, 0) for _ in range(5))


@pytest.mark.parametrize("between", [1, None], ids=["executors came", "Spark did not answer"])
def test_the_time_starts_again(between: int | None) -> None:
    world = World()
    assert not any(world.after(seconds, slots) for seconds, slots in [(0, 2), (1, 0), (50, between), (1, 0), (60, 0)])
    assert world.after(1, 0)


def test_an_application_may_release_its_executors_if_no_task_waits() -> None:
    world = World()
    world.after(0, 2)
    world.tasks = 0
    assert not any(world.after(100, 0) for _ in range(3))
    world.tasks = 1
    assert [world.after(seconds, 0) for seconds in (1, 60, 1)] == [False, False, True], "it gets the timeout for new executors"


class Context:
    """A Spark context whose Java side answers ``stopped``, or raises it."""

    def __init__(self, stopped: bool | Exception, master: str = "spark://h:7077", slots: int = 0) -> None:
        def is_stopped() -> bool:
            if isinstance(stopped, Exception):
                raise stopped
            return stopped

        self.master = master
        java = SimpleNamespace(
            isStopped=is_stopped,
            maxNumConcurrentTasks=lambda _profile: slots,
            resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: None),
        )
        self._jsc = SimpleNamespace(sc=lambda: java)
        self.getConf = lambda: SimpleNamespace(getAll=lambda: [])


def watch(context: Context, last_loss: str | None = None) -> Any:
    return application_ended(context, SimpleNamespace(last_loss=last_loss, launched=1), 0.0)  # type: ignore[arg-type]


def test_the_reason_of_the_end_is_named_if_it_is_known() -> None:
    assert watch(Context(stopped=True))() == "the Spark application has ended"
    loss = "Master removed our application: KILLED"
    assert watch(Context(stopped=True), loss)() == f"the Spark application has ended: {loss}"


def test_a_running_application_and_a_dead_jvm_give_no_reason() -> None:
    assert watch(Context(stopped=False))() is None
    assert watch(Context(stopped=OSError("connection refused")))() is None


@pytest.mark.parametrize(
    ("master", "ends"), [("spark://h:7077", True), ("yarn", False), ("k8s://https://h:6443", False), ("local[2]", False)]
)
def test_only_a_standalone_master_forgets_an_application(master: str, ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluiceway.spark.application_watch.LostExecutors", lambda *_: lambda *_: True)
    assert (watch(Context(stopped=False, master=master))() is not None) is ends
