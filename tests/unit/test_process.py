"""Background processes: found again by whoever asks, ended with all that they started, and never mistaken for another."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.stack.process import BackgroundProcess, free_port, port_is_open, port_owner
from support.eventually import eventually

Make = Callable[..., BackgroundProcess]

WAIT = "import signal; print('up', flush=True); signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause(); signal.pause()"
PARENT = (
    "import signal, subprocess, sys; c = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']{how}); "
    "print('child', c.pid, flush=True); signal.pause()"
)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Make background processes that run a Python text and are gone after the test."""
    made: list[BackgroundProcess] = []

    def build(code: str = WAIT, name: str = "worker", **options: object) -> BackgroundProcess:
        made.append(BackgroundProcess(name, [sys.executable, "-c", code], tmp_path, **options))  # type: ignore[arg-type]
        return made[-1]

    yield build
    for process in made:
        process.stop(timeout=0.1)


def logged(process: BackgroundProcess, text: str) -> Callable[[], bool]:
    return lambda: text in process.log_tail()


def started(process: BackgroundProcess, text: str = "up") -> int:
    process.start()
    process.wait_until(logged(process, text), 20)
    pid = process.status().pid
    assert pid is not None
    return pid


def is_gone(process: psutil.Process) -> bool:
    """Whether a process has ended, reaped or not. Its number may be another's by now."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_started_process_runs_in_a_session_of_its_own_and_writes_to_the_log(make: Make) -> None:
    process = make()
    pid = started(process)
    assert os.getsid(pid) == pid
    assert process.log.read_text() == "up\n"
    assert process.status().started is not None


def test_the_environment_is_added_to_and_the_working_directory_is_the_given_one(make: Make, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    code = "import os, signal; print(os.environ['EXTRA'], 'PATH' in os.environ, os.getcwd(), 'up', flush=True); signal.pause()"
    process = make(code, env={"EXTRA": "yes"}, cwd=place)
    started(process)
    assert process.log_tail() == f"yes True {place} up"


def test_another_object_on_the_same_folder_sees_and_stops_the_process(make: Make, tmp_path: Path) -> None:
    running = psutil.Process(started(make()))
    other = BackgroundProcess("worker", [], tmp_path)
    assert other.status().pid == running.pid
    assert other.stop()
    assert is_gone(running)


def test_starting_a_running_process_again_gives_the_running_one(make: Make) -> None:
    pid = started(make())
    assert make().start().pid == pid


def test_stop_ends_the_process_and_removes_the_pid_file(make: Make) -> None:
    process = make()
    running = psutil.Process(started(process))
    assert process.stop()
    assert is_gone(running)
    assert not process.pid_file.exists()
    assert not process.stop()


def test_a_process_that_ignores_sigterm_is_killed(make: Make) -> None:
    process = make(DEAF)
    running = psutil.Process(started(process))
    assert process.stop(timeout=0.2)
    assert is_gone(running)


@pytest.mark.parametrize("how", ["", ", start_new_session=True"], ids=["same session", "own session"])
def test_stop_ends_children_too(make: Make, how: str) -> None:
    process = make(PARENT.format(how=how))
    started(process, "child")
    child = psutil.Process(int(process.log_tail().split()[-1]))
    process.stop()
    assert not child.is_running()


def test_stop_ends_children_of_a_process_that_was_killed(make: Make) -> None:
    process = make(PARENT.format(how=""))
    pid = started(process, "child")
    child = psutil.Process(int(process.log_tail().split()[-1]))
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not process.is_running(), within=10)
    assert child.is_running()
    assert process.stop()
    assert not child.is_running()


def test_a_killed_process_is_not_called_running_before_its_parent_reaps_it(make: Make) -> None:
    process = make()
    pid = started(process)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not process.is_running(), within=10)
    assert process.status().pid is None


def test_a_pid_that_went_to_another_process_is_neither_running_nor_stopped(make: Make, tmp_path: Path) -> None:
    process = make()
    pid = started(process)
    stale = BackgroundProcess("stale", [sys.executable, "-c", WAIT], tmp_path)
    record = json.loads(process.pid_file.read_text())
    stale.pid_file.write_text(json.dumps({**record, "started": record["started"] - 60}))
    assert not stale.is_running()
    assert not stale.stop()
    assert process.status().pid == pid


@pytest.mark.parametrize("content", ["", "12", "{", '{"pid": 999999999, "started": 1.0}'])
def test_a_stale_or_broken_pid_file_hinders_nothing(make: Make, content: str) -> None:
    process = make()
    process.pid_file.write_text(content)
    assert not process.is_running()
    assert started(process)


def test_waiting_fails_at_once_with_the_logs_tail_when_the_process_ends(make: Make) -> None:
    process = make("print('cannot open the door'); raise SystemExit(3)")
    process.start()
    with pytest.raises(ConnectError, match=r"(?s)worker ended before it was ready.*cannot open the door"):
        process.wait_until(lambda: False, 600)


def test_waiting_fails_when_the_process_ended_although_it_had_said_ready(make: Make) -> None:
    process = make("print('up')")
    process.start()
    eventually(lambda: not process.is_running(), within=20)
    with pytest.raises(ConnectError, match="ended"):
        process.wait_until(logged(process, "up"), 20)


def test_waiting_too_long_says_so_with_the_logs_tail_and_leaves_the_process(make: Make) -> None:
    process = make()
    started(process)
    with pytest.raises(ConnectError, match=r"(?s)not ready within 0.1 s.*up"):
        process.wait_until(lambda: False, 0.1)
    assert process.is_running()


def test_the_log_of_the_start_before_is_kept(make: Make) -> None:
    process = make()
    started(process)
    process.stop()
    process.start()
    assert process.log.with_suffix(".log.1").read_text() == "up\n"


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    process = BackgroundProcess("ghost", ["/nonexistent/program"], tmp_path)
    with pytest.raises(MissingToolError, match="ghost cannot be started: /nonexistent/program"):
        process.start()
    assert not process.is_running()


def test_a_free_port_lies_outside_the_range_for_outgoing_connections() -> None:
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    port = free_port()
    assert 1024 < port < low
    assert not port_is_open("127.0.0.1", port)


def test_a_listening_port_is_open_and_its_owner_is_known() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port_is_open("127.0.0.1", port)
        owner = port_owner(port)
        assert owner is not None
        assert str(os.getpid()) in owner
    assert not port_is_open("127.0.0.1", port)
    assert port_owner(port) is None


def test_only_the_process_that_listens_on_a_port_is_said_to(tmp_path: Path) -> None:
    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))
        ours.listen()
        taken, wanted = ours.getsockname()[1], free_port()
        code = f"import socket, time; s = socket.create_server(('127.0.0.1', {wanted})); time.sleep(600)"
        process = BackgroundProcess("listener", [sys.executable, "-c", code], tmp_path)
        assert not process.listens_on(taken)
        process.start()
        try:
            process.wait_until(lambda: process.listens_on(wanted), 30)
            assert not process.listens_on(taken)
        finally:
            process.stop()
