"""A source whose broker is restarted, killed, frozen or unreachable, at least once and exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from support.faults.broker import FaultyBroker
from support.faults.durations import fault_seconds
from support.faults.guarantee import Guarantee
from support.faults.rows import NewRow
from support.faults.worker_group import BATCH, RATE, Progress, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Recovers = Callable[[str, Callable[[], object], Callable[[], object], float], None]


@pytest.fixture(params=list(Guarantee), ids=lambda guarantee: guarantee.name.lower())
def guarantee(request: pytest.FixtureRequest) -> Guarantee:
    return request.param


@pytest.fixture
def recovers(group: WorkerGroup, guarantee: Guarantee, row: NewRow) -> Recovers:
    """Run a source through a broker fault of some seconds, and check its records."""

    def run(fault: str, begin: Callable[[], object], end: Callable[[], object], seconds: float) -> None:
        topic = group.source()
        driver = group.driver()
        group.running()
        made = row(fault, f"{guarantee.value}, RUNNING by itself")
        progress = Progress(group.address, topic)
        progress.more(2 * RATE)
        begin()
        try:
            time.sleep(seconds)  # how long the fault lasts
        finally:
            end()
        ended = time.monotonic()
        progress.more(RATE, driver=driver)
        made.recovered(time.monotonic() - ended)
        progress.more(2 * RATE)
        group.running()
        assert driver.is_running()
        progress.close()
        driver.stop(30)
        verdict = group.verdict(topic)
        made.judge(verdict)
        guarantee.check(verdict, faults=1, batch=BATCH)

    return run


@pytest.mark.matrix(7)
def test_a_restarted_broker(recovers: Recovers, broker: FaultyBroker) -> None:
    recovers("broker stopped and started", broker.stop, broker.start, 0)


@pytest.mark.matrix(7)
def test_a_killed_broker(recovers: Recovers, broker: FaultyBroker) -> None:
    recovers("broker killed (-9) and started", broker.kill, broker.start, 0)


@pytest.mark.matrix(8)
@pytest.mark.timeout(1200)
def test_a_temporarily_stopped_broker(recovers: Recovers, broker: FaultyBroker) -> None:
    seconds = fault_seconds(90, full=600)
    recovers(f"broker away for {seconds:g} s", broker.kill, broker.start, seconds)


@pytest.mark.matrix(9)
def test_a_frozen_broker(recovers: Recovers, broker: FaultyBroker) -> None:
    recovers("broker frozen for 20 s", broker.freeze, broker.thaw, 20)


@pytest.mark.matrix(33)
def test_a_network_that_drops_all_packets(recovers: Recovers, broker: FaultyBroker) -> None:
    recovers("network cut for 20 s", broker.proxy.cut, broker.proxy.restore, 20)


@pytest.mark.matrix(33)
def test_reset_connections(recovers: Recovers, broker: FaultyBroker) -> None:
    recovers("connections reset, 5 s refused", broker.proxy.drop, broker.proxy.restore, 5)
