"""The channel between a standalone driver and its tasks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
from sluiceway.worker.standalone_channel import HostServer, TaskHost
server = HostServer(TaskHost(None, None))
print(server.services.address)
server.close()
"""


def test_a_driver_ends_without_a_word_and_leaves_no_socket() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=30, check=True)
    socket = Path(done.stdout.strip())
    assert socket.is_absolute()
    assert done.stderr == ""
    assert not socket.parent.exists()
