"""One heartbeat for all connectors of a driver. A fake stands in for the status topic."""

from __future__ import annotations

from sluiceway.errors import KafkaClientError
from sluiceway.storage.heartbeats import Heartbeat
from sluiceway.storage.model import LeaseOwner
from sluiceway.worker.driver_heartbeat import DriverHeartbeat


class Status:
    """Stands in for the status topic's store."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Heartbeat | None]] = []
        self.down = False

    def put_heartbeat(self, sender: str, heartbeat: Heartbeat | None) -> None:
        if self.down:
            raise KafkaClientError("the brokers are down", "_ALL_BROKERS_DOWN")
        self.written.append((sender, heartbeat))


class Driver:
    """A driver whose clock the test sets; it beats every 10 seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.status = Status()
        self.heartbeat = DriverHeartbeat(self.status, "application-a", "w:1", 10.0, lambda: self.now)  # type: ignore[arg-type]

    def beaten(self, now: float) -> list[dict[str, int]]:
        """Return what is written at a time."""
        self.now = now
        self.status.written.clear()
        self.heartbeat.beat()
        return [dict(each.connectors) for _, each in self.status.written if each is not None]


def test_one_record_names_all_connectors_however_many_runners_find_it_due() -> None:
    driver = Driver()
    for name in ("a", "b", "c"):
        driver.heartbeat.renew(name, 3)
    assert driver.beaten(109.9) == []
    assert driver.beaten(110) == [{"a": 3, "b": 3, "c": 3}]
    assert driver.beaten(110.1) == []
    assert driver.status.written == []


def test_a_driver_says_at_once_which_task_started_it() -> None:
    status, owner = Status(), LeaseOwner("d", "r", "t")
    heartbeat = DriverHeartbeat(status, "connector-a", "w:1", 10.0, lambda: 100.0, owner=owner)  # type: ignore[arg-type]
    assert not heartbeat.beat()
    heartbeat.renew("a", 3)
    assert heartbeat.beat()
    assert not heartbeat.beat()
    assert status.written == [("connector-a", Heartbeat("w:1", {"a": 3}, owner=owner))]


def test_a_connector_whose_runner_hangs_or_has_ended_is_left_out() -> None:
    driver = Driver()
    for name in ("ended", "hangs", "runs"):
        driver.heartbeat.renew(name, 1)
    driver.heartbeat.drop("ended")
    for now in (110, 120, 130):
        driver.heartbeat.renew("runs", 2)
        assert driver.beaten(now) == [{"hangs": 1, "runs": 2}]
    driver.heartbeat.renew("runs", 2)
    assert driver.beaten(140) == [{"runs": 2}]


def test_a_driver_that_was_suspended_still_names_all_its_connectors() -> None:
    driver = Driver()
    for name in ("a", "b"):
        driver.heartbeat.renew(name, 1)
    assert driver.beaten(500) == [{"a": 1, "b": 1}]


def test_nothing_is_written_for_no_connector() -> None:
    assert Driver().beaten(110) == []


def test_a_heartbeat_that_cannot_be_written_is_tried_again_at_the_next_interval() -> None:
    driver = Driver()
    driver.heartbeat.renew("a", 1)
    driver.status.down = True
    assert driver.beaten(110) == []
    driver.status.down = False
    assert driver.beaten(120) == [{"a": 1}]


def test_the_end_of_the_driver_removes_its_record_if_that_is_possible() -> None:
    driver = Driver()
    driver.heartbeat.close()
    assert driver.status.written == [("application-a", None)]
    driver.status.down = True
    driver.heartbeat.close()


def test_a_heartbeat_says_where_the_driver_s_metrics_are() -> None:
    status = Status()
    heartbeat = DriverHeartbeat(status, "application-a", "w:1", 0.0, lambda: 1.0, metrics="http://h:1")  # type: ignore[arg-type]
    heartbeat.renew("a", 1)
    heartbeat.beat()
    assert [each.metrics for _, each in status.written if each is not None] == ["http://h:1"]
