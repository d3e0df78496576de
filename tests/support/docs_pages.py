"""Runs the commands of a documentation page as they are printed, and compares what they print with the page."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sluiceway.stack.broker import EmbeddedBroker
from support.eventually import LIMIT, eventually

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"

#: Guides that use the demo's connectors and topics, and the commands of the reference.
ON_THE_DEMO = (
    "reference/cli.md",
    "how-to/configure-records.md",
    "how-to/handle-bad-records.md",
    "how-to/manage-offsets.md",
    "how-to/preview.md",
    "how-to/read-a-database.md",
    "how-to/read-files-and-logs.md",
    "how-to/read-iceberg-and-delta.md",
    "how-to/restart-failed-tasks.md",
    "how-to/review-and-undo-changes.md",
    "how-to/run-standalone.md",
    "how-to/schedule-connectors.md",
    "how-to/secure-the-rest-api.md",
    "how-to/share-an-application.md",
    "how-to/troubleshoot.md",
    "how-to/use-secrets.md",
    "how-to/use-spark-formats.md",
    "how-to/use-the-command-line.md",
    "how-to/write-connectors.md",
    "how-to/write-files.md",
    "how-to/write-to-a-database.md",
    "how-to/write-to-a-search-index.md",
)
#: Pages that tests/airflow/test_docs_pages.py runs.
RUN = (
    *ON_THE_DEMO,
    "how-to/recipes.md",
    "tutorial/changes-of-a-database.md",
    "tutorial/every-hour-exactly-once.md",
    "tutorial/first-connector.md",
    "tutorial/first-pipeline.md",
    "tutorial/topic-to-lakehouse.md",
)
_CLUSTER = "needs a cluster of several machines"
#: Other pages with commands, and why no test runs them.
NOT_RUN = {
    "how-to/bring-your-plugins.md": "needs jars of other projects; `make test-plugins` runs such plugins",
    "how-to/connect-singer.md": "installs packages from the network; tests/integration/test_singer_taps.py runs the tap",
    "how-to/install-in-airflow.md": "needs another Airflow; tests/airflow/test_wheel.py runs its commands in one",
    "how-to/install.md": "installs packages from the network; tools/check-release does so",
    "how-to/move-from-debezium.md": "needs Debezium; tests/cdc runs a real one",
    "how-to/move-from-kafka-connect.md": "needs Kafka Connect; tests/integration runs a real one",
    "how-to/replicate-between-clusters.md": "needs two clusters; tests/integration/test_java_mirror.py has them",
    "how-to/run-on-kubernetes.md": _CLUSTER,
    "how-to/run-on-spark-clusters.md": _CLUSTER,
    "how-to/run-on-spark-standalone.md": _CLUSTER,
    "how-to/run-on-yarn.md": _CLUSTER,
    "how-to/start-faster.md": "changes settings of hosts",
    "how-to/trace-connectors.md": "needs a collector",
    "how-to/upgrade.md": "needs an older installation; tests/airflow/test_upgrade.py has one",
    "how-to/watch-with-prometheus.md": "needs Prometheus; tests/monitoring runs a real one",
    "how-to/work-in-the-page.md": "is about a browser; tests/page uses one",
    "how-to/write-to-hdfs.md": _CLUSTER,
    "how-to/write-to-iceberg-and-delta.md": "needs Docker for its catalog; tests run the same server from its jars",
    "how-to/write-to-s3.md": "needs an account at a cloud; tests use a server with the same protocol",
    "tutorial/your-own-airflow.md": "installs packages from the network; `make test-own-airflow` follows it",
}

#: A block, also in a list. A comment before it says why no test runs it.
BLOCK = re.compile(r"(?:^ *<!-- not run: ([^>]+) -->\n\n?)?^ *```(sh|console|python)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
#: How the output of a command begins that must fail.
_ERROR = "sluiceway: "
_FILE = re.compile(r"# ([\w/]+\.py)\n")
#: Commands that make the checkout's environment and the stack, which all tests of a folder share.
_STACK = re.compile(r"^(make .*|\. \.venv/bin/activate)$", re.MULTILINE)


class Shell:
    """Runs commands in a folder where ``.sluiceway`` is a stack's folder. ``cd`` lasts, as in a terminal.

    Args:
        folder: stands for the checkout, or for a folder of the reader's own.
        home: the stack's folder, which need not exist yet.
        code: where the page's Python files are saved, from ``folder``.
        environment: where pages install packages (``support.own_environment``); by default no page does.
    """

    def __init__(self, folder: Path, home: Path, code: str = ".", environment: Path | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        (folder / ".sluiceway").symlink_to(home)
        programs = folder / "programs"
        programs.mkdir()
        # Docker does not run in the machines of the tests: the servers are the tests' own.
        (programs / "docker").write_text(f'#!/bin/sh\nPYTHONPATH={TESTS} exec {sys.executable} -m support.docker_stand_in "$@"\n')
        (programs / "docker").chmod(0o755)
        self._code = folder / code
        self._directory = folder / "directory"  # a file with the one that the last commands ended in
        self._directory.write_text(str(folder), encoding="utf-8")
        # As with the virtual environment that the page activates.
        path = f"{programs}:{environment or Path(sys.executable).parent}:{os.environ['PATH']}"
        own = {"SLUICEWAY_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "XDG_CONFIG_HOME": str(folder / "config")}
        self._env = {**os.environ, "PATH": path, **own}

    def run(self, commands: str, *, within: float = 600) -> tuple[int, str]:
        """Run commands and return their exit code and output."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"trap 'pwd > {self._directory}' EXIT\n{commands}"],
            cwd=self._directory.read_text(encoding="utf-8").strip(),
            env=self._env,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        print(commands, done.stdout, done.stderr[-3000:], sep="\n")
        return done.returncode, done.stdout

    def prints(self, command: str, output: str) -> bool:
        code, found = self.run(command)
        return code == 0 and matches(found, output)

    def save(self, name: str, text: str) -> None:
        self._code.mkdir(parents=True, exist_ok=True)
        (self._code / name).write_text(text, encoding="utf-8")


def end_processes(folder: str) -> None:
    """Stop what a page has started that failed: the processes of pid files below a folder, and the broker of its stack."""
    for file in Path(folder).glob("*/*.pid"):
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(file.read_text()), signal.SIGTERM)
    EmbeddedBroker(Path(folder) / "home/broker").stop()


class Commands(Protocol):
    """Runs the commands of a page, and saves its files where the commands find them."""

    def run(self, commands: str) -> tuple[int, str]: ...

    def prints(self, command: str, output: str) -> bool: ...

    def save(self, name: str, text: str) -> None: ...


_ANY_LINES = f"{re.escape(chr(10))}.*?{re.escape(chr(10))}"


def matches(found: str, shown: str) -> bool:
    """Return True if a command printed what the page shows: ``...`` stands for any text, and alone on a line for any lines."""
    pattern = ".*?".join(map(re.escape, shown.strip().split("..."))).replace(_ANY_LINES, r"\n(?:.*?\n)?")
    return re.fullmatch(pattern, found.strip(), re.DOTALL) is not None


def run_page(page: str, shell: Commands, *, within: float = LIMIT) -> None:
    """Run each command of a page below docs; those with a prompt must at last print what the page shows, also an error."""
    for reason, kind, indented in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        block = textwrap.dedent(indented)
        if reason:
            continue
        if kind == "python":
            if file := _FILE.match(block):
                shell.save(file[1], block[file.end() :])
        elif kind == "sh":
            code, _ = shell.run(_STACK.sub("", block))
            assert code == 0, block
        else:
            shown = _PROMPT.findall(block)
            assert shown, block
            for command, output in shown:
                if output.startswith(_ERROR):
                    command = f"! {{ {command}; }} 2>&1"
                eventually(lambda c=command, o=output: shell.prints(c, o) or None, within=within, what=f"{command}: {output}")
