"""Background processes: start, discovery by pid file, and end with all their children."""

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
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.eventually import eventually

Make = Callable[..., BackgroundProcess]

WAIT = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause(); signal.pause()"
PARENT = (
    "import signal, subprocess, sys; c = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']{how}); "
    "print('child', c.pid, flush=True); signal.pause()"
)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Make background processes that run a Python program and are ended after the test."""
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


def has_ended(process: psutil.Process) -> bool:
    """Return True if a process has ended, reaped or not. Another process may have its pid now."""
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


def test_environment_and_working_directory_are_as_given(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    code = "import os, signal; print(os.environ['EXTRA'], 'PATH' in os.environ, os.getcwd(), 'up', flush=True); signal.pause()"
    process = make(code, env={"EXTRA": "yes"}, cwd=folder)
    started(process)
    assert process.log_tail() == f"yes True {folder} up"


def test_another_object_with_the_same_folder_finds_and_stops_the_process(make: Make, tmp_path: Path) -> None:
    running = psutil.Process(started(make()))
    other = BackgroundProcess("worker", [], tmp_path)
    assert other.status().pid == running.pid
    assert other.stop()
    assert has_ended(running)


def test_starting_a_running_process_again_returns_the_running_one(make: Make) -> None:
    pid = started(make())
    assert make().start().pid == pid


def test_stop_ends_the_process_and_removes_the_pid_file(make: Make) -> None:
    process = make()
    running = psutil.Process(started(process))
    assert process.stop()
    assert has_ended(running)
    assert not process.pid_file.exists()
    assert not process.stop()


def test_a_process_that_ignores_sigterm_is_killed(make: Make) -> None:
    process = make(STUBBORN)
    running = psutil.Process(started(process))
    assert process.stop(timeout=0.2)
    assert has_ended(running)


@pytest.mark.parametrize("how", ["", ", start_new_session=True"], ids=["same session", "own session"])
def test_stop_ends_children_too(make: Make, how: str) -> None:
    process = make(PARENT.format(how=how))
    started(process, "child")
    child = psutil.Process(int(process.log_tail().split()[-1]))
    process.stop()
    assert not child.is_running()


def test_stop_takes_a_child_that_has_just_ended_for_ended(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    process = make(PARENT.format(how=""))
    parent, wait = started(process, "child"), psutil.Process.wait

    def waited(member: psutil.Process, timeout: float | None = None) -> int | None:
        if member.pid != parent:
            raise FileNotFoundError(2, "No such file or directory")  # what pidfd_open() reports on some systems
        return wait(member, timeout)

    monkeypatch.setattr(psutil.Process, "wait", waited)
    assert process.stop()
    assert not process.pid_file.exists()


def test_stop_ends_children_of_a_process_that_was_killed(make: Make) -> None:
    process = make(PARENT.format(how=""))
    pid = started(process, "child")
    child = psutil.Process(int(process.log_tail().split()[-1]))
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not process.is_running())
    assert child.is_running()
    assert process.stop()
    assert not child.is_running()


def test_a_killed_process_does_not_count_as_running_until_its_parent_reaps_it(make: Make) -> None:
    process = make()
    pid = started(process)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not process.is_running())
    assert process.status().pid is None


def test_a_pid_that_another_process_has_now_is_neither_running_nor_stopped(make: Make, tmp_path: Path) -> None:
    process = make()
    pid = started(process)
    stale = BackgroundProcess("stale", [sys.executable, "-c", WAIT], tmp_path)
    record = json.loads(process.pid_file.read_text())
    stale.pid_file.write_text(json.dumps({**record, "started": record["started"] - 60}))
    assert not stale.is_running()
    assert not stale.stop()
    assert process.status().pid == pid


@pytest.mark.parametrize("content", ["", "12", "{", '{"pid": 999999999, "started": 1.0}'])
def test_a_stale_or_invalid_pid_file_does_not_prevent_a_start(make: Make, content: str) -> None:
    process = make()
    process.pid_file.write_text(content)
    assert not process.is_running()
    assert started(process)


def test_waiting_fails_with_the_end_of_the_log_as_soon_as_the_process_ends(make: Make) -> None:
    process = make("print('cannot open the door'); raise SystemExit(3)")
    process.start()
    with pytest.raises(ConnectError, match=r"(?s)worker ended before it was ready.*cannot open the door"):
        process.wait_until(lambda: False, 600)


def test_waiting_fails_if_the_process_became_ready_and_ended(make: Make) -> None:
    process = make("print('up')")
    process.start()
    eventually(lambda: not process.is_running())
    with pytest.raises(ConnectError, match="ended"):
        process.wait_until(logged(process, "up"), 20)


def test_waiting_too_long_fails_with_the_end_of_the_log_and_leaves_the_process_running(make: Make) -> None:
    process = make()
    started(process)
    with pytest.raises(ConnectError, match=r"(?s)not ready within 0.1 s.*up"):
        process.wait_until(lambda: False, 0.1)
    assert process.is_running()


def test_the_previous_log_is_kept(make: Make) -> None:
    process = make()
    started(process)
    process.stop()
    process.start()
    assert process.log.with_suffix(".log.1").read_text() == "up\n"


def test_the_error_names_a_program_that_does_not_exist(tmp_path: Path) -> None:
    process = BackgroundProcess("ghost", ["/nonexistent/program"], tmp_path)
    with pytest.raises(MissingToolError, match="ghost cannot be started: /nonexistent/program"):
        process.start()
    assert not process.is_running()


def test_listens_on_is_true_only_for_the_process_that_listens(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o644)])
def test_only_this_user_reads_what_a_process_writes(make: Make, tmp_path: Path, *, private: bool, mode: int) -> None:
    made = tmp_path / "made"
    before = os.umask(0o022)
    try:
        process = make(f"open({str(made)!r}, 'w')\n{WAIT}", private=private)
        started(process)
    finally:
        os.umask(before)
    assert made.stat().st_mode & 0o777 == mode
    assert {path.stat().st_mode & 0o777 for path in (process.log, process.pid_file)} == {0o600}
