"""Reading a consumer group's offsets from a cluster that has had no consumer group yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sluiceway.stack.broker import EmbeddedBroker

_READ = """
import sys
from confluent_kafka.admin import AdminClient
from sluiceway.kafka.admin import group_offsets
admin = AdminClient({"bootstrap.servers": sys.argv[1]})
print([group_offsets(admin, f"group-{number}") for number in range(10)])
"""


def test_a_new_cluster_without_a_group_coordinator_does_not_crash_the_process(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    try:
        command = [sys.executable, "-c", _READ, broker.start()]
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        outputs = [reader.communicate(timeout=120)[0].strip() for reader in readers]
    finally:
        broker.stop()
    assert [reader.returncode for reader in readers] == [0, 0, 0]
    assert outputs == [str([{}] * 10)] * 3
