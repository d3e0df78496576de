"""Standalone mode before Spark starts."""

from __future__ import annotations

import socket
from pathlib import Path
from unittest.mock import Mock

import pytest

from sluiceway.cli.main import main
from sluiceway.stack import standalone


def test_a_port_in_use_is_one_line_that_names_it_and_the_key_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = Mock(side_effect=AssertionError("Spark starts"))
    monkeypatch.setattr(standalone, "local_context", started)
    monkeypatch.setattr(standalone, "log_to_stderr", Mock())
    monkeypatch.setattr(standalone, "check_brokers", Mock())
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        file = tmp_path / "worker.properties"
        file.write_text(f"listeners=http://127.0.0.1:{port}\noffset.storage.file.filename={tmp_path}/offsets\n")
        assert main(["standalone", str(file)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"sluiceway: Cannot listen on 127.0.0.1:{port}: ")
    assert line.endswith("or set another port in 'listeners'. See docs/how-to/troubleshoot.md#port.")
