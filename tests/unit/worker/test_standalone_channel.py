"""The connection between a standalone driver and its tasks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
from sluiceway.worker.standalone_channel import DriverEndpoint, DriverEndpointServer
server = DriverEndpointServer(DriverEndpoint(None, None))
print(server.services.address)
server.close()
"""


def test_a_driver_ends_without_output_and_removes_its_socket() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=30, check=True)
    socket = Path(done.stdout.strip())
    assert socket.is_absolute()
    assert done.stderr == ""
    assert not socket.parent.exists()
