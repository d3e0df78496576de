"""Topics and inputs that are created and deleted while a connector runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.checker import Verdict, check
from sluiceway.connectors.verifiable.results import from_file
from support.eventually import LIMIT, eventually
from support.faults.broker import FaultyBroker
from support.faults.cluster import Cluster
from support.faults.connectors import FOLDER_SOURCE
from support.faults.rows import NewRow
from support.faults.worker_group import RATE, Progress, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

UNDISTURBED = "0 lost, 0 duplicated, RUNNING"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyBroker]:
    """A broker that does not create topics automatically."""
    made = FaultyBroker(tmp_path_factory.mktemp("broker"), {"auto.create.topics.enable": "false"})
    try:
        made.start()
        yield made
    finally:
        made.close()


class Inputs:
    """One topic per task of a verifiable source, with its numbers."""

    def __init__(self, cluster: Cluster, prefix: str, file: Path) -> None:
        self._cluster = cluster
        self._prefix = prefix
        self._file = file
        self.sent: dict[int, int] = {}

    def topic(self, task: int) -> str:
        return f"{self._prefix}-input-{task}"

    def send(self, task: int, count: int = 500) -> None:
        first = self.sent.get(task, -1) + 1
        if not first:
            self._cluster.create(self.topic(task))
        numbers = range(first, first + count)
        self._cluster.send(self.topic(task), ((None, f'{{"task":{task},"seqno":{number}}}') for number in numbers))
        self.sent[task] = numbers[-1]

    def arrived(self, group: WorkerGroup, within: float = LIMIT) -> None:
        eventually(
            lambda: check(from_file(self._file), sent=self.sent).lost == 0,
            within=within,
            what=f"{self.sent}, not {check(from_file(self._file))}\n{group.drivers[-1].log_tail(20)}",
        )

    def verdict(self) -> Verdict:
        return check(from_file(self._file), sent=self.sent)


@pytest.fixture
def inputs(group: WorkerGroup, cluster: Cluster, tmp_path: Path) -> Inputs:
    return Inputs(cluster, group.name, tmp_path / "results")


@pytest.mark.matrix(24)
def test_a_deleted_topic_does_not_affect_others_and_a_new_one_is_read(
    group: WorkerGroup, cluster: Cluster, inputs: Inputs, row: NewRow, tmp_path: Path
) -> None:
    made = row("of topics.regex, one topic deleted and one added", UNDISTURBED)
    inputs.send(0)
    inputs.send(1)
    name = f"{group.name}-sink"
    config = {
        "connector.class": "sluiceway.connectors.verifiable.sink.VerifiableSinkConnector",
        "file": str(tmp_path / "results"),
    }
    group.herder.create(name, {**config, "topics.regex": f"{group.name}-input-.*"})
    driver = group.driver(name)
    inputs.arrived(group)
    eventually(lambda: cluster.committed(name, inputs.topic(1)) == 500, what="the offset of what is going to be deleted")
    cluster.delete(inputs.topic(1))
    changed = time.monotonic()
    inputs.send(0)
    inputs.send(2)
    inputs.arrived(group)
    made.recovered(time.monotonic() - changed)
    assert group.states(name) == ("RUNNING", ["RUNNING"])
    inputs.send(0)
    inputs.arrived(group)
    group.drain(driver)
    made.judge(inputs.verdict())
    assert inputs.verdict().exactly_once


@pytest.mark.matrix(24)
def test_a_topic_added_to_the_config_is_read_from_its_start(
    group: WorkerGroup, inputs: Inputs, row: NewRow, tmp_path: Path
) -> None:
    made = row("a topic added by a new config", UNDISTURBED)
    inputs.send(0)
    inputs.send(1)
    name = group.sink(inputs.topic(0), tmp_path / "results")
    driver = group.driver(name)
    eventually(lambda: inputs.verdict().total == 500, what=f"the first topic\n{driver.log_tail(20)}")
    group.herder.put_config(name, {**group.herder.info(name).config, "topics": f"{inputs.topic(0)},{inputs.topic(1)}"})
    changed = time.monotonic()
    inputs.send(0)
    inputs.arrived(group)
    made.recovered(time.monotonic() - changed)
    group.running(name)
    group.drain(driver)
    made.judge(inputs.verdict())
    assert inputs.verdict().exactly_once


@pytest.mark.matrix(24)
def test_a_source_continues_once_its_deleted_topic_is_created_again(group: WorkerGroup, cluster: Cluster, row: NewRow) -> None:
    made = row("a source's topic deleted, created again 5 s later", "0 lost since, 0 duplicated, RUNNING by itself")
    topic = group.source()
    driver = group.driver()
    group.running()
    progress = Progress(group.address, topic)
    progress.more(2 * RATE)
    progress.close()
    cluster.delete(topic)
    time.sleep(5)  # how long the fault lasts
    cluster.create(topic)
    back = time.monotonic()
    eventually(lambda: cluster.end(topic) > RATE, what=f"records\n{driver.log_tail(30)}")
    made.recovered(time.monotonic() - back)
    group.running()
    group.drain(driver)
    [(_, offset)] = group.stored_offsets()
    written = list(group.seen(topic))
    verdict = check(written, sent={0: int(str(offset["seqno"]))}, first=written[0].seqno)
    made.judge(verdict)
    assert verdict.exactly_once, verdict


@pytest.mark.matrix(24)
def test_a_new_input_gets_a_task_and_other_tasks_are_not_restarted(
    group: WorkerGroup, cluster: Cluster, row: NewRow, tmp_path: Path, own_connectors: None
) -> None:
    made = row("a source finds a new input (request_task_reconfiguration)", f"{UNDISTURBED}, the first task not restarted")
    folder, starts = tmp_path / "inputs", tmp_path / "starts"
    folder.mkdir()
    (folder / "0").touch()
    topic = cluster.create(f"{group.name}-numbers")
    config = {"connector.class": FOLDER_SOURCE, "topic": topic, "throughput": "200", "folder": str(folder), "tasks.max": "3"}
    group.herder.create(group.name, config)
    driver = group.driver(master="local[4]")
    group.running()
    eventually(lambda: cluster.end(topic) > 200, what=f"records\n{driver.log_tail(20)}")
    (folder / "1").touch()
    appeared = time.monotonic()
    eventually(lambda: group.states() == ("RUNNING", ["RUNNING"] * 2), what=f"two tasks\n{driver.log_tail(30)}")
    eventually(lambda: any(each.task == 1 for each in group.seen(topic)), what="records of the new input")
    made.recovered(time.monotonic() - appeared)
    assert starts.read_text().split() == ["0", "1"]
    group.drain(driver)
    verdict = group.verdict(topic)
    made.judge(verdict)
    assert [each.task for each in verdict.tasks] == [0, 1]
    assert verdict.exactly_once, verdict
