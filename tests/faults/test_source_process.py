"""A source whose processes are killed, terminated and frozen, at least once and exactly once."""

from __future__ import annotations

import random
import signal
import time

import pytest

from sluiceway.connectors.verifiable.checker import Verdict, check
from sluiceway.connectors.verifiable.numbering import task_and_seqno
from support.eventually import eventually
from support.faults.guarantee import Guarantee
from support.faults.kills import at_a_random_point, end_of, kill
from support.faults.processes import Role, freeze, send, thaw
from support.faults.rows import NewRow, Row
from support.faults.worker_group import BATCH, POLL, RATE, Progress, WorkerGroup, read

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

KILLS = 20
FENCED = "Stopping without a commit"


@pytest.fixture(params=list(Guarantee), ids=lambda guarantee: guarantee.name.lower())
def guarantee(request: pytest.FixtureRequest) -> Guarantee:
    return request.param


@pytest.fixture
def driven(group: WorkerGroup) -> tuple[WorkerGroup, str]:
    """A worker group with a running verifiable source, and the source's topic."""
    topic = group.source()
    group.driver()
    group.running()
    return group, topic


def stop_and_judge(group: WorkerGroup, topic: str, row: Row) -> Verdict:
    """Drain the driver, so that the stored offset matches the sent records, and check the topic."""
    group.drivers[-1].stop(30)
    verdict = group.verdict(topic)
    row.judge(verdict)
    return verdict


@pytest.mark.parametrize("role", [Role.JVM, Role.DRIVER, pytest.param(Role.WORKERS, marks=pytest.mark.matrix(5))])
@pytest.mark.matrix(1, 2, 3)
def test_killed_processes_are_replaced_and_nothing_is_lost(
    driven: tuple[WorkerGroup, str], guarantee: Guarantee, row: NewRow, chance: random.Random, rounds: int, role: Role
) -> None:
    group, topic = driven
    made = row(f"kill -9 of the {role.value}, {rounds} times", guarantee.value)
    progress = Progress(group.address, topic)
    for _ in range(rounds):
        at_a_random_point(progress, chance)
        kill(group, role, progress, made)
    progress.close()
    if role is Role.WORKERS:
        assert len(group.drivers) == 1
        assert group.drivers[0].is_running()
    guarantee.check(stop_and_judge(group, topic, made), faults=rounds, batch=BATCH)


@pytest.mark.matrix(1, 2, 3, 5)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("guarantee", [Guarantee.EXACTLY_ONCE], ids=["exactly_once"])
def test_twenty_random_kills_keep_the_guarantee(
    driven: tuple[WorkerGroup, str], guarantee: Guarantee, row: NewRow, chance: random.Random
) -> None:
    group, topic = driven
    made = row(f"{KILLS} kills of random processes at random points", guarantee.value)
    progress = Progress(group.address, topic)
    for _ in range(KILLS):
        at_a_random_point(progress, chance)
        kill(group, chance.choice(list(Role)), progress, made)
    progress.close()
    guarantee.check(stop_and_judge(group, topic, made), faults=KILLS, batch=BATCH)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("guarantee", [Guarantee.EXACTLY_ONCE], ids=["exactly_once"])
def test_transactions_aborted_by_the_source_are_not_read(
    group: WorkerGroup, guarantee: Guarantee, row: NewRow, chance: random.Random, rounds: int
) -> None:
    made = row(f"boundaries of the connector's own, each third aborted, {rounds} kills", guarantee.value)
    own = {"transaction_boundary": "connector", "transaction_records": "120", "transaction_abort_every": "3"}
    topic = group.source(**own)
    group.driver()
    group.running()
    progress = Progress(group.address, topic)
    for _ in range(rounds):
        at_a_random_point(progress, chance)
        kill(group, Role.JVM, progress, made)
    progress.close()
    guarantee.check(stop_and_judge(group, topic, made), faults=rounds, batch=BATCH)
    aborted = check(group.seen(topic, "read_uncommitted")).duplicated
    made.seen += f"; {aborted} in aborted transactions"
    assert aborted > 0


@pytest.mark.matrix(4)
@pytest.mark.parametrize("role", [Role.DRIVER, Role.JVM])
def test_a_terminated_driver_repeats_nothing(
    driven: tuple[WorkerGroup, str], guarantee: Guarantee, row: NewRow, chance: random.Random, rounds: int, role: Role
) -> None:
    group, topic = driven
    made = row(f"SIGTERM to the {role.value}, {rounds} times ({guarantee.name.lower()})", Guarantee.EXACTLY_ONCE.value)
    progress = Progress(group.address, topic)
    for _ in range(rounds):
        at_a_random_point(progress, chance)
        send(group.drivers[-1], role, signal.SIGTERM)
        requested = time.monotonic()
        end_of(group.drivers[-1])
        eventually(lambda: group.states() == ("UNASSIGNED", ["UNASSIGNED"]), what=str(group.states()))
        progress.more(RATE, driver=group.driver())
        made.recovered(time.monotonic() - requested)
    progress.close()
    Guarantee.EXACTLY_ONCE.check(stop_and_judge(group, topic, made), faults=rounds, batch=BATCH)


@pytest.mark.matrix(9)
def test_a_driver_frozen_during_a_takeover_is_fenced(driven: tuple[WorkerGroup, str], guarantee: Guarantee, row: NewRow) -> None:
    group, topic = driven
    # Without transactions, Kafka accepts the records that a frozen task had buffered.
    most = POLL * 2 if guarantee is Guarantee.AT_LEAST_ONCE else 0
    made = row("SIGSTOP for 30 s, a second driver meanwhile, SIGCONT", f"{guarantee.value}; at most {most} by the old driver")
    progress = Progress(group.address, topic)
    progress.more(3 * RATE)
    old = group.drivers[0]
    frozen = freeze(old)
    stopped = time.time()
    try:
        group.driver()
        progress.more(RATE, driver=group.drivers[1])
        made.recovered(time.time() - stopped)
        time.sleep(max(0.0, stopped + 30 - time.time()))  # how long the fault lasts
    finally:
        thaw(frozen)
    thawed_ms = int(time.time() * 1000)
    end_of(old)
    assert FENCED in old.log.read_text(), old.log_tail(30)
    group.running()
    progress.more(3 * RATE)
    progress.close()
    verdict = stop_and_judge(group, topic, made)
    late = repeated_since(group, topic, thawed_ms)
    made.seen += f"; {late} by the old driver"
    guarantee.check(verdict, faults=1, batch=BATCH)
    assert late <= most


@pytest.mark.matrix(10)
def test_of_two_drivers_started_at_once_one_is_fenced(group: WorkerGroup, guarantee: Guarantee, row: NewRow) -> None:
    topic = group.source()
    made = row("two drivers started at once", f"{guarantee.value}; one fenced within 30 s")
    progress = Progress(group.address, topic)
    first, second = group.driver(), group.driver()
    group.running()
    started = time.monotonic()
    eventually(lambda: not (first.is_running() and second.is_running()), what="the end of one of the two")
    made.recovered(time.monotonic() - started)
    fenced, winner = (first, second) if second.is_running() else (second, first)
    assert FENCED in fenced.log.read_text(), fenced.log_tail(30)
    progress.more(3 * RATE)
    progress.close()
    winner.stop(30)
    verdict = group.verdict(topic)
    made.judge(verdict)
    guarantee.check(verdict, faults=1, batch=BATCH)


def repeated_since(group: WorkerGroup, topic: str, since_ms: int) -> int:
    """Count the records appended after this time whose number was present already: those of a replaced driver."""
    known: set[int] = set()
    repeated = 0
    for message in read(group.address, topic):
        _, number = task_and_seqno(message.key, message.value)
        repeated += number in known and message.appended > since_ms
        known.add(number)
    return repeated
