from __future__ import annotations

from types import SimpleNamespace

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.partitioner import partition_of
from sluiceway.storage.factory import Stores
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.kafka_channel import KafkaChannels
from sluiceway.worker.kafka_task_services import KafkaTaskServices

WORKER = WorkerConfig.of({"group.id": "g", "config.storage.topic": "configs", "status.storage.topic": "statuses"})
ENDS = {TopicPartition("statuses", number): 100 + number for number in range(5)}


def services(task: TaskId) -> KafkaTaskServices:
    status = KafkaStatusBackingStore(WORKER)
    status._log = SimpleNamespace(positions=dict(ENDS))  # type: ignore[assignment]
    stores = Stores(MemoryConfigBackingStore(), status, None)  # type: ignore[arg-type]
    made = KafkaChannels(WORKER, "me:1", stores, "me").channel(task.connector).services(task)
    assert isinstance(made, KafkaTaskServices)
    return made


@pytest.mark.parametrize("number", range(12))
def test_a_task_reads_commands_from_where_the_driver_has_read_the_partitions_of_its_keys(number: int) -> None:
    positions = dict(services(TaskId("orders", number)).positions)
    assert positions.pop(TopicPartition("configs", 0)) == 0
    keys = (b"status-connector-orders", f"status-task-orders-{number}".encode(), b"sluiceway-host-release-orders")
    places = {TopicPartition("statuses", partition_of(key, 5)) for key in keys}
    assert positions == {place: ENDS[place] for place in places}
