"""The demo ends when its connectors run and its file is copied, the first time and again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from sluiceway.errors import ConnectError
from sluiceway.rest.client import ConnectClient
from sluiceway.stack import demo, demo_shop
from sluiceway.stack.process import BackgroundProcess


class Connectors:
    """Stands for a REST client: each connector goes through the given states, one at each look, and stays in the last.

    Args:
        states: of each connector, a text such as ``RUNNING: RUNNING UNASSIGNED``, the connector's and its tasks'.
        committed: the offset of each sink; None before its first commit.
    """

    def __init__(self, *states: str, existing: tuple[str, ...] = (), committed: int | None = None) -> None:
        self.existing = set(existing)
        self._committed = committed
        self.resumed: list[str] = []
        self._states = states
        self._looks: dict[str, int] = {}

    def put_config(self, name: str, _config: Any) -> bool:
        new = name not in self.existing
        self.existing.add(name)
        return new

    def resume(self, name: str) -> None:
        self.resumed.append(name)

    def status(self, name: str) -> dict[str, Any]:
        look = self._looks.get(name, 0)
        self._looks[name] = look + 1
        connector, _, tasks = self._states[min(look, len(self._states) - 1)].partition(":")
        return {"connector": {"state": connector}, "tasks": [{"id": n, "state": each} for n, each in enumerate(tasks.split())]}

    def offsets(self, _name: str) -> list[dict[str, Any]]:
        return [] if self._committed is None else [{"partition": {}, "offset": {"kafka_offset": self._committed}}]

    def client(self) -> ConnectClient:
        return cast(ConnectClient, self)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(demo, "_PROGRESS_SECONDS", 0.0)


@pytest.mark.parametrize(
    "before",
    [
        "UNASSIGNED:",
        "UNASSIGNED: RUNNING",
        "RUNNING:",
        "RUNNING: UNASSIGNED",
        "RUNNING: RUNNING UNASSIGNED",
        "RUNNING: FAILED",
        "PAUSED: PAUSED",
    ],
)
def test_waits_until_the_connector_and_all_tasks_run(before: str) -> None:
    said: list[str] = []
    connectors = Connectors(before, before, "RUNNING: RUNNING RUNNING")
    demo.await_running(connectors.client(), ["a", "b"], said.append)
    assert connectors.status("b")["tasks"][0]["state"] == "RUNNING"
    assert len(said) == 2
    assert all(f"a {before.partition(':')[0]}" in line and "; b " in line for line in said)


def test_an_end_that_never_comes_is_an_error_that_says_what_is_left() -> None:
    with pytest.raises(ConnectError, match=r"After 0 s: a RUNNING \(no task yet\); 3 of 5 lines\. `sluiceway logs NAME`"):
        demo.await_running(Connectors("RUNNING:").client(), ["a"], print, timeout=0.0, waiting=lambda: "3 of 5 lines")


def test_a_second_demo_says_that_the_connectors_exist_and_resumes_them() -> None:
    said: list[str] = []
    connectors = Connectors("RUNNING: RUNNING", existing=("old",))
    demo.create(connectors.client(), {"old": {}, "new": {}}, said.append)
    assert said == ["Connector old exists already and continues where it was", "Created connector new"]
    assert connectors.resumed == ["old"]


def test_a_second_demo_waits_although_the_file_is_copied(tmp_path: Path) -> None:
    for file in ("access.log", "copy.log"):
        (tmp_path / file).write_text("line\n")
    said: list[str] = []
    connectors = Connectors("UNASSIGNED:", "RUNNING: RUNNING", existing=(demo.SOURCE, demo.SINK))
    demo.run_main_job(connectors.client(), tmp_path, said.append)
    assert said[2:] == ["  demo-source UNASSIGNED (no task yet); demo-sink UNASSIGNED (no task yet)"]
    assert demo.report(connectors.client(), tmp_path).count("RUNNING  (task 0 RUNNING)") == 2


def test_the_first_demo_waits_for_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: (tmp_path / "copy.log").write_bytes((tmp_path / "access.log").read_bytes()))
    said: list[str] = []
    demo.run_main_job(Connectors("RUNNING: RUNNING").client(), tmp_path, said.append)
    assert said[-1] == "  0 of 10,000 lines copied"


@pytest.mark.parametrize(
    ("copy", "committed"),
    [
        ("1\n2\n1\n2\n", 2),  # the sink was rewound
        ("1\n2\n1\n2\n", None),
        ("2\n", 2),  # it skipped a record
        ("1\n", 2),  # somebody cut the file
        ("", 2),
        ("", 4),  # somebody removed both files, and the first was made again
    ],
)
def test_a_copy_that_can_no_longer_equal_its_source_is_reported_instead_of_waited_for(
    tmp_path: Path, copy: str, committed: int | None
) -> None:
    (tmp_path / "access.log").write_text("1\n2\n")
    (tmp_path / "copy.log").write_text(copy)
    said: list[str] = []
    connectors = Connectors("RUNNING: RUNNING", existing=(demo.SOURCE, demo.SINK), committed=committed)
    demo.run_main_job(connectors.client(), tmp_path, said.append, timeout=0.0)
    assert said[-1].startswith(f"{tmp_path}/copy.log is no longer a copy of {tmp_path}/access.log")


@pytest.mark.parametrize("committed", [None, 0, 1])
def test_a_copy_that_may_still_be_completed_is_waited_for(tmp_path: Path, committed: int | None) -> None:
    (tmp_path / "access.log").write_text("1\n2\n")
    (tmp_path / "copy.log").write_text("1\n")
    with pytest.raises(ConnectError, match="1 of 2 lines copied"):
        demo.run_main_job(Connectors("RUNNING: RUNNING", committed=committed).client(), tmp_path, print, timeout=0.0)


def test_the_shop_waits_for_its_connectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BackgroundProcess, "start", lambda _: None)
    said: list[str] = []
    demo_shop.start(Connectors("UNASSIGNED:", "RUNNING: RUNNING").client(), tmp_path, said.append)
    assert "demo-archive UNASSIGNED" in said[-2]
    assert said[-1].startswith("Records keep flowing")
