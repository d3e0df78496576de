"""Follows docs/tutorial/your-own-airflow.md as a newcomer does, who has the wheel in the folder ``dist``.

    python tools/follow_page.py [PYTHON ...] [--environment FOLDER ...] [--keep]

``make test-own-airflow`` runs it. For each Python, such as 3.13, it runs all commands of the page in a folder outside the
repository, in two terminals, and compares what they print with the page. pip gets no constraints, so everything is the newest.
With ``--environment`` it installs nothing but the wheel, in place of the Sluiceway that a virtual environment has beside its
Airflow. Prints the seconds of each step, the minutes from the empty environment to RUNNING and to the page's end, and the load
of the machine beside them. Returns 1 unless each got to the end of the page.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import psutil
from matrix_pythons import find_python

from sluiceway import __version__
from sluiceway.stack.ports import free_port
from support.docs_pages import run_page
from support.eventually import NEVER
from support.wheel import build_wheel

PAGE = "tutorial/your-own-airflow.md"
_VENV, _COPY = "python3 -m venv venv", "cp -r dist try-sluiceway"
_INSTALL = f"pip install 'dist/sluiceway-{__version__}-py3-none-any.whl[airflow]'"
_SERVER = "airflow standalone"
_SECOND_TERMINAL = "cd try-sluiceway\n. venv"
_BEFORE_THE_END = "sluiceway broker stop"
_RUNNING = '"RUNNING"'
#: Airflow 3.1 asks for a token even where everybody is an administrator.
_CURL = """
token=$({curl} -s "$AIRFLOW__API__BASE_URL/auth/token" | sed 's/.*"access_token":"\\([^"]*\\).*/\\1/')
exec {curl} -H "Authorization: Bearer $token" "$@"
"""
#: Variables of this process that a newcomer's terminal does not have.
_OURS = ("AIRFLOW", "PYTHON", "SLUICEWAY", "SPARK", "VIRTUAL_ENV")


class Terminals:
    """Two terminals: commands keep their folder and variables until the page opens the second one.

    Args:
        folder: where the first command runs; must be empty.
        replaced: what stands in the place of texts of the page.
        variables: what both terminals have in their environment.
        programs: shell scripts by the names of the programs that they stand for.
    """

    def __init__(
        self, folder: Path, replaced: Mapping[str, str], variables: Mapping[str, str], programs: Mapping[str, str]
    ) -> None:
        self._folder, self._replaced = folder, replaced
        (folder / "programs").mkdir()
        for name, script in programs.items():
            (folder / "programs" / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / "programs" / name).chmod(0o755)
        path = os.pathsep.join((str(folder / "programs"), *_outside(os.environ["PATH"])))
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
        self._given = {**inherited, **variables, "PATH": path}
        self._state = folder / "no terminal yet"  # the variables of the terminal that was opened last
        self._server: subprocess.Popen[bytes] | None = None
        self._log = folder / "airflow.log"
        self._said = ""
        self._began = time.monotonic()
        self._load = os.getloadavg()[0]
        self._minutes: dict[str, float] = {}
        self._open()

    def run(self, commands: str) -> tuple[int, str]:
        """Run commands and return their exit code and output. A server stays in the background."""
        if commands.startswith(_SECOND_TERMINAL):
            self._open()
        if _BEFORE_THE_END in commands:
            self._interrupt()
        code, printed = self._shell(commands)
        if _INSTALL in commands:
            self._reached("pip's end")
        self._say(" ... ".join(dict.fromkeys(commands.strip().splitlines()[:: max(1, commands.strip().count("\n"))])))
        return code, printed

    def prints(self, command: str, output: str) -> bool:
        """Return whether a command prints what the page says."""
        code, printed = self._shell(command)
        same = code == 0 and printed.strip() == output.strip()
        if same:
            self._say(f"{command}: {' '.join(output.split())}")
            if _RUNNING in output:
                self._reached("RUNNING")
        else:
            time.sleep(1)  # as a person, who does not ask a hundred times a second
        return same

    def save(self, name: str, text: str) -> None:
        """Save a file of the page."""
        (self._folder / name).write_text(text, encoding="utf-8")

    def sum_up(self) -> None:
        """Print how long the page took from the empty environment, and the load of the machine."""
        self._reached("the page's end")
        minutes = ", ".join(f"{minutes:.1f} to {what}" for what, minutes in self._minutes.items())
        self._say(f"Minutes: {minutes}; load {self._load:.0f} at the beginning, {os.getloadavg()[0]:.0f} at the end")

    def last_words(self) -> str:
        """Return the output of the last command, and the end of Airflow's log."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.is_file() else []
        return "\n".join((self._said, *lines[-30:]))

    def close(self) -> None:
        """End what a failure has left."""
        if self._server is not None:
            os.killpg(self._server.pid, signal.SIGKILL)
        self._open()
        self._bash(f"cd {self._folder}/try-sluiceway && . venv/bin/activate && {_BEFORE_THE_END}")

    def _interrupt(self) -> None:
        """Press Ctrl-C in the first terminal until Airflow has ended, and report how often and what is left then."""
        if self._server is None:
            return
        server, self._server = self._server, None
        presses = next((count for count in range(1, 4) if _ends(server)), 0)
        left = _of_group(server)
        rest = f"{len(left)} processes, such as {left[-1]}" if left else "nothing"
        self._say(f"Ctrl-C: Airflow ended after {presses or 'more than 3'} of them, and left {rest}")
        if left:
            os.killpg(server.pid, signal.SIGKILL)

    def _open(self) -> None:
        self._state = self._folder / f"terminal-{len(list(self._folder.glob('terminal-*')))}"
        self._state.write_text(f"cd {self._folder}\n")

    def _shell(self, commands: str) -> tuple[int, str]:
        for old, new in self._replaced.items():
            commands = commands.replace(old, new)
        commands, server, _ = commands.partition(_SERVER)
        done = self._bash(f". {self._state}\n{commands}\n{{ export -p; echo \"cd '$PWD'\"; }} > {self._state}\n")
        if server and done.returncode == 0:
            command = ["bash", "-c", f". {self._state}\nexec {server}"]
            with self._log.open("wb") as log:
                self._server = subprocess.Popen(command, env=self._given, stdout=log, stderr=log, start_new_session=True)
        return done.returncode, done.stdout

    def _bash(self, script: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, env=self._given, capture_output=True, text=True, check=False)
        self._said = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done

    def _reached(self, what: str) -> None:
        self._minutes.setdefault(what, (time.monotonic() - self._began) / 60)

    def _say(self, what: str) -> None:
        sys.stdout.write(f"[{time.monotonic() - self._began:4.0f} s] {what}\n")
        sys.stdout.flush()


def follow(replaced: Mapping[str, str], programs: Mapping[str, str], *, keep: bool) -> str:
    """Follow the page in a new folder, and return what went wrong, or an empty text."""
    folder = Path(tempfile.mkdtemp(prefix="own-airflow-"))
    ports, variables = _beside_others(folder)
    terminals = Terminals(folder, {**replaced, **ports}, variables, programs)
    try:
        run_page(PAGE, terminals, within=NEVER)
        terminals.sum_up()
    except AssertionError as error:
        return f"{error}\n{terminals.last_words()}"
    finally:
        terminals.close()
        if not keep:
            shutil.rmtree(folder)
    return ""


def follow_with(python: str, wheel: Path, *, keep: bool) -> str:
    """Follow the page with a Python of a minor version."""
    program = find_python(python)
    if program is None:
        return "not on this machine"
    return follow({_COPY: f"cp -r {wheel.parent} try-sluiceway/dist"}, {"python3": f'exec {program} "$@"'}, keep=keep)


def follow_beside(environment: Path, wheel: Path, *, keep: bool) -> str:
    """Follow the page with a virtual environment that has an Airflow."""
    pip = f"{sys.executable} -m pip --python {environment}/bin/python install --quiet --no-deps --force-reinstall {wheel}"
    return follow(
        {_VENV: f"ln -s {environment} venv", _COPY: ":", _INSTALL: pip},
        {"curl": _CURL.format(curl=shutil.which("curl"))},
        keep=keep,
    )


def main(arguments: Sequence[str]) -> int:
    """Follow the page with each Python and each environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="default: 3.13 and 3.12, unless an environment is given")
    parser.add_argument("--environment", action="append", default=[], type=Path, metavar="FOLDER")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's programs would ignore Ctrl-C
    failed = False
    with tempfile.TemporaryDirectory(prefix="wheel-") as built:
        wheel = build_wheel(Path(built))
        ways = [
            (f"Python {each}", partial(follow_with, each, wheel)) for each in options.pythons or _default(options.environment)
        ]
        ways += [(str(each), partial(follow_beside, each.absolute(), wheel)) for each in options.environment]
        for name, follow_it in ways:
            problem = follow_it(keep=options.keep)
            failed = failed or bool(problem)
            sys.stdout.write(f"{name}: {problem or 'got to the end of the page'}\n")
    return int(failed)


def _default(environments: Sequence[Path]) -> tuple[str, ...]:
    return () if environments else ("3.13", "3.12")


def _beside_others(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the page's texts with free ports, and Airflow's settings for them: another Airflow may run on this machine."""
    kafka, api, *logs = (free_port() for _ in range(4))
    url = f"http://localhost:{api}"
    settings = {
        "API__PORT": str(api),
        "API__BASE_URL": url,
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "LOGGING__WORKER_LOG_SERVER_PORT": str(logs[0]),
        "LOGGING__TRIGGER_LOG_SERVER_PORT": str(logs[1]),
        "DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(folder / "bundles"),
    }
    ports = {"--port 9092": f"--port {kafka}", "localhost:9092": f"localhost:{kafka}", "localhost:8080": f"localhost:{api}"}
    return ports, {f"AIRFLOW__{key}": value for key, value in settings.items()}


def _outside(path: str) -> list[str]:
    """Return the folders of PATH without those of virtual environments."""
    return [each for each in path.split(os.pathsep) if each and not Path(each).with_name("pyvenv.cfg").is_file()]


def _ends(server: subprocess.Popen[bytes]) -> bool:
    """Press Ctrl-C, and return whether the program has ended within the time that a person waits."""
    os.killpg(server.pid, signal.SIGINT)
    try:
        server.wait(timeout=60)
    except subprocess.TimeoutExpired:
        return False
    return True


def _of_group(leader: subprocess.Popen[bytes]) -> list[str]:
    """Return the processes of a terminal's process group."""
    found = []
    for process in psutil.process_iter(["name", "status"]):
        try:
            if os.getpgid(process.pid) == leader.pid and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.info['name']}")
        except ProcessLookupError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
