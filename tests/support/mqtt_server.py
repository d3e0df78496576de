"""Starts an MQTT broker for tests: Mosquitto, from the machine or its Debian. Sessions and messages outlive its end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.database import HOST
from support.database_server import LocalServer
from support.debian_packages import unpacked_package
from support.eventually import LIMIT, eventually

_SETTINGS = """
listener {port} {host}
allow_anonymous true
password_file {folder}/passwords
acl_file {folder}/rights
max_packet_size 100000
max_queued_messages 0
log_type error
log_type warning
log_type notice
log_type information
log_type subscribe
persistence true
persistence_location {folder}/
user root
"""
_RIGHTS = "topic deny closed/#\ntopic readwrite #\nuser user\ntopic readwrite #\n"


class MqttServer(LocalServer):
    """A broker that takes MQTT 5 and 3.1.1, and packets of 100,000 bytes.

    Clients need no login. A user ``user`` with the password ``secret`` has alone a right to the topics below ``closed``.
    """

    name = "mqtt"

    def __init__(self, more: str = "") -> None:
        """``more`` are further lines of the broker's settings."""
        super().__init__()
        self.port = free_port(HOST)
        self.url = f"tcp://{HOST}:{self.port}"
        programs, environment = _installed()
        (self.folder / "rights").write_text(_RIGHTS)
        (self.folder / "passwords").write_text("user:secret\n")
        for each in ("rights", "passwords"):
            (self.folder / each).chmod(0o600)
        subprocess.run([programs / "mosquitto_passwd", "-U", self.folder / "passwords"], env=environment, check=True)
        (self.folder / "settings").write_text(_SETTINGS.format(port=self.port, host=HOST, folder=self.folder) + more)
        command = [programs.parent / "sbin/mosquitto", "-c", self.folder / "settings"]
        self._process = BackgroundProcess(self.name, list(map(str, command)), self.folder, env=environment)

    def start(self) -> None:
        """Start the broker unless it runs, and wait until it answers."""
        self._process.start()
        self._process.wait_until(self._answers, LIMIT)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the broker with a signal; SIGTERM lets it save its messages. ``start`` starts it again on the same port."""
        pid = self._process.status().pid
        assert pid is not None, "the broker does not run"
        os.kill(pid, number)
        eventually(lambda: not self._process.is_running(), what="the end of the broker")

    def has_subscriber(self, client: str) -> bool:
        """Return whether a client has subscribed to something since the first start."""
        return f": {client} 1 " in (self.folder / f"{self.name}.log").read_text()

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), 5):
                return True
        except OSError:
            return False


def _installed() -> tuple[Path, dict[str, str]]:
    """Return the folder of Mosquitto's programs for users, and the environment that they need."""
    if shutil.which("mosquitto") and (found := shutil.which("mosquitto_passwd")):
        return Path(found).parent, dict(os.environ)
    root = unpacked_package("mosquitto")
    libraries = ":".join(str(each) for each in (*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")))
    return root / "usr/bin", {**os.environ, "LD_LIBRARY_PATH": libraries}
