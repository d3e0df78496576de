"""A real Prometheus, and its promtool: those of the machine, or Debian's package in the cache folder."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from sluiceway.folders import cache_home, file_lock
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.docker_files import DOCKER

if TYPE_CHECKING:
    from typing_extensions import Self

MONITORING = DOCKER / "monitoring"
BOARDS = sorted((MONITORING / "grafana" / "dashboards").glob("*.json"))

_HOME = cache_home() / "prometheus"
_HURRY = 20
_SCRAPE_SECONDS = 2
_DURATION = re.compile(r"(?<![\w.])(\d+)m\b")
_MILLISECONDS = re.compile(r"([<>] )(\d+0000)\b")


def program(name: str) -> str | None:
    """Return the path of ``prometheus`` or ``promtool``, None if neither the machine nor the cache folder has it."""
    cached = _HOME / "usr" / "bin" / name
    return shutil.which(name) or (str(cached) if cached.exists() else None)


def fetch() -> None:
    """Put the programs into the cache folder, from the package of a Debian or Ubuntu, unless they can be had."""
    if program("prometheus") and program("promtool"):
        return
    if shutil.which("apt-get") is None:
        raise SystemExit("Neither prometheus and promtool nor apt-get are here. Install Prometheus 2.42 or newer.")
    with file_lock(_HOME / "fetch.lock"), tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", "prometheus"], cwd=folder, check=True)
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), str(_HOME)], check=True)


def names_in(expression: str) -> set[str]:
    """Return the names of the metrics that a query reads."""
    without_texts = re.sub(r'"[^"]*"', '""', re.sub(r"\$\{?\w+\}?", "", expression))
    return set(re.findall(r"\b(?:(?:kafka|sluiceway)_\w+|up|ALERTS)\b", without_texts))


def targets(board: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the panel's title and the query of each target of a board."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def hurried(rules: str, factor: int = _HURRY) -> str:
    """Return rules with times shorter by a factor: minutes in durations, and milliseconds that are compared with."""
    rules = _DURATION.sub(lambda found: f"{int(found[1]) * 60 // factor}s", rules)
    return _MILLISECONDS.sub(lambda found: f"{found[1]}{int(found[2]) // factor}", rules)


class Prometheus:
    """A Prometheus with the alert rules of docker/, hurried, that scrapes targets every 2 s. Use it as a context manager."""

    def __init__(self, folder: Path, targets: Iterable[str]) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        found = program("prometheus")
        assert found is not None, "run `python -m support.prometheus` in tests/, or install Prometheus"
        folder.mkdir(parents=True, exist_ok=True)
        config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        interval = f"{_SCRAPE_SECONDS}s"
        config["global"] = {"scrape_interval": interval, "evaluation_interval": "1s", "scrape_timeout": interval}
        config["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        (folder / "alerts.yml").write_text(hurried((MONITORING / "alerts.yml").read_text()))
        command = [found, "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={self.address}"]
        self.process = BackgroundProcess("prometheus", command, folder)

    def __enter__(self) -> Self:
        self.process.start()
        self.process.wait_until(self._ready, 60)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def query(self, expression: str, **more: str) -> list[dict[str, Any]]:
        """Return the series of a query; with ``start``, ``end``, and ``step`` over that range. Fails if it is wrong."""
        kind = "query_range" if more else "query"
        answer = httpx.get(f"http://{self.address}/api/v1/{kind}", params={"query": expression, **more}, timeout=30)
        assert answer.status_code == httpx.codes.OK, (expression, answer.text)
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def names(self) -> set[str]:
        """Return the names of all metrics."""
        return set(httpx.get(f"http://{self.address}/api/v1/label/__name__/values", timeout=30).json()["data"])

    def firing(self, alert: str, **labels: str) -> bool:
        """Return whether an alert with these labels fires."""
        wanted = ",".join(f'{name}="{value}"' for name, value in {"alertname": alert, "alertstate": "firing", **labels}.items())
        return bool(self.query(f"ALERTS{{{wanted}}}"))

    def _ready(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"http://{self.address}/-/ready", timeout=5).status_code == httpx.codes.OK
        return False


if __name__ == "__main__":
    fetch()
