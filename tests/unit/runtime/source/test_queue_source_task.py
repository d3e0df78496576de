"""Queue sources under the runtime: bounded runs, acknowledgements, pause and resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from sluiceway.api import SourceConnector
from sluiceway.config.definition import ConfigDef
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.eventually import eventually
from support.queue_server import GenerousSource, QueueServer


class QueueConnector(SourceConnector):
    """Gives its task the server of a test."""

    server: QueueServer
    slow = 0.0

    class Task(GenerousSource):
        def __init__(self) -> None:
            super().__init__(QueueConnector.server)
            self.slow = QueueConnector.slow

    task_class = Task

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([])

    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        return "The queue has it."

    def start(self, config: Mapping[str, str]) -> None: ...

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{}]


CONFIG = {"name": "src", "connector.class": f"{__name__}.QueueConnector"}
WORKER = dict.fromkeys(("key.converter", "value.converter"), "StringConverter")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> QueueServer:
    server = QueueServer(*(f"{number}-1" for number in range(100)))
    monkeypatch.setattr(QueueConnector, "server", server, raising=False)
    return server


def test_a_bounded_run_reads_all_that_the_queue_has_however_long_it_takes(
    server: QueueServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QueueConnector, "slow", 0.4)  # longer than the polls that end other sources
    with RunningTask(CONFIG, WORKER, bounded=True) as task:
        assert task.join().records == 100
    assert len(server.acknowledged) == 100


def test_the_runtime_acknowledges_pauses_and_resumes(server: QueueServer) -> None:
    with RunningTask(CONFIG, WORKER) as task:
        eventually(lambda: len(server.acknowledged) == 100)
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        with server.lock:
            server.waiting.append("late-1")
        asked = task.commands._asked
        eventually(lambda: task.commands._asked > asked + 2)
        assert list(server.waiting) == ["late-1"]
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: len(server.acknowledged) == 101)
    assert not server.connected
