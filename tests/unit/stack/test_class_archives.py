"""The broker's class archive is kept only if the JVM that wrote it has ended normally."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sluiceway.errors import ConnectError
from sluiceway.stack import class_archives
from sluiceway.stack.broker import BrokerStatus
from sluiceway.stack.process import BackgroundProcess

_BROKER = """\
import os, signal, sys, time
def end(*_):
    open(sys.argv[1], "w").write("classes")
    os._exit(int(sys.argv[2]))
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("exit_code", [143, 1])
def test_only_an_archive_of_a_broker_that_ended_normally_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, exit_code: int
) -> None:
    class Broker:
        def __init__(self, folder: Path, *, recorded_classes: Path) -> None:
            command = [sys.executable, "-c", _BROKER, str(recorded_classes), str(exit_code)]
            self._process = BackgroundProcess("broker", command, folder)

        def start(self, timeout: float) -> None:
            self._process.start()
            self._process.wait_until(lambda: "ready" in self._process.log_tail(), timeout)

        def status(self) -> BrokerStatus:
            status = self._process.status()
            return BrokerStatus(status.running, status.pid, None, status.log, tmp_path)

        def stop(self) -> None:
            self._process.stop()

    archive = tmp_path / "classes.jsa"
    monkeypatch.setattr(class_archives, "EmbeddedBroker", Broker)
    monkeypatch.setattr(class_archives, "broker_jars", list)
    monkeypatch.setattr(class_archives, "broker_archive", lambda _: archive)
    if exit_code == 143:
        assert class_archives.make_broker_archive().read_text() == "classes"
        return
    with pytest.raises(ConnectError, match=rf"no class archive to {tmp_path}.*exit code {exit_code}\)"):
        class_archives.make_broker_archive()
    assert [file.name for file in tmp_path.iterdir()] == ["classes.lock"]
