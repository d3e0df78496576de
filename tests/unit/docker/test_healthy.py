"""The health check of the containers with Airflow's components."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from support.docker_files import DOCKER

HEALTH = {
    "metadatabase": {"status": "healthy"},
    "scheduler": {"status": "healthy"},
    "dag_processor": {"status": "unhealthy"},
    "triggerer": {"status": None},
}


class _Airflow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/api/v2/monitor/health" else 404)
        self.end_headers()
        self.wfile.write(json.dumps(HEALTH).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    http = HTTPServer(("127.0.0.1", 0), _Airflow)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()
    http.server_close()


def _check(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-S", "-E", str(DOCKER / "healthy.py"), *arguments]  # without installed packages
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("component", "code"),
    [("metadatabase", 0), ("scheduler", 0), ("dag_processor", 1), ("triggerer", 1), ("nobody", 1)],
)
def test_a_component_is_healthy_only_if_the_api_server_reports_it(server: str, component: str, code: int) -> None:
    assert _check(component, server)[0] == code


def test_an_unreachable_api_server_counts_as_unhealthy() -> None:
    code, output = _check("scheduler", "http://127.0.0.1:9")
    assert code == 1
    assert "scheduler: " in output
