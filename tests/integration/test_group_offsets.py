"""Reading consumer groups' offsets from a cluster that has had none yet, and from one whose broker dies."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from sluiceway.errors import ConnectError
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port
from support.eventually import eventually

_READ = """
import sys
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.group_offsets import ConsumerGroups
groups = ConsumerGroups(WorkerConfig.of({"bootstrap.servers": sys.argv[1]}))
print([groups.offsets(f"group-{number}") for number in range(10)])
"""

_READ_ON = """
import sys, threading, time
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.kafka.group_offsets import ConsumerGroups

def read(number):
    groups = ConsumerGroups(WorkerConfig.of({"bootstrap.servers": sys.argv[1]}))
    while True:
        try:
            groups.offsets(f"group-{number}")
            print(number, flush=True)
        except ConnectError as error:
            print(error, file=sys.stderr, flush=True)
        time.sleep(0.05)

for number in range(8):
    threading.Thread(target=read, args=(number,), daemon=True).start()
time.sleep(600)
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


def started(broker: EmbeddedBroker) -> bool:
    with suppress(ConnectError):
        broker.start()
    return broker.status().running


@pytest.mark.long  # alone, because a neighbor may take the dead broker's port, and keep it
def test_a_process_that_reads_offsets_outlives_the_death_of_a_broker_and_reads_on(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, port=free_port())
    address = broker.start()
    reader = subprocess.Popen([sys.executable, "-c", _READ_ON, address], stdout=subprocess.PIPE, text=True)
    numbers: list[str] = []

    def follow() -> None:
        assert reader.stdout is not None
        for line in reader.stdout:
            numbers.append(line)

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        for _ in range(2):
            eventually(lambda: len(set(numbers)) == 8, what="all threads have read")
            process = psutil.Process(broker.status().pid)
            process.kill()
            process.wait()
            eventually(lambda: started(broker), what="a start on the same port, which another process may have taken")
            numbers.clear()
        eventually(lambda: len(set(numbers)) == 8, what="all threads have read again")
        assert reader.poll() is None
    finally:
        reader.kill()
        reader.wait()
        follower.join()
        broker.stop()
