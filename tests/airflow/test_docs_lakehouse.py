"""The tutorial about the lakehouse: each of its commands runs, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from sluiceway.stack import demo
from support.eventually import eventually
from support.stack import START, RunningStack

PAGE = Path(__file__).parents[2] / "docs/tutorial/topic-to-lakehouse.md"
_BLOCK = re.compile(r"```(sh|console)\n(.*?)```", re.DOTALL)
_PROMPT = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
#: Commands that make the stack, which all tests of this folder share.
_STACK = re.compile(r"^(make .*|\. \.venv/bin/activate)$", re.MULTILINE)

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1200)]


class Shell:
    """Runs commands in a folder where ``.sluiceway`` is the stack's folder."""

    def __init__(self, stack: RunningStack, folder: Path) -> None:
        (folder / ".sluiceway").symlink_to(stack.home)
        self._folder = folder
        self._env = {**os.environ, "SLUICEWAY_SERVER": stack.addresses.rest, "SPARK_LOCAL_IP": "127.0.0.1"}

    def run(self, commands: str, *, within: float = 300) -> tuple[int, str]:
        """Run commands and return their exit code and output."""
        text = commands.replace("/tmp/lake", str(self._folder / "lake"))  # noqa: S108 (the page's folder)
        command = ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(
            command, cwd=self._folder, env=self._env, capture_output=True, text=True, timeout=within, check=False
        )
        print(text, done.stdout, done.stderr[-3000:], sep="\n")
        return done.returncode, done.stdout

    def prints(self, command: str, output: str) -> bool:
        code, found = self.run(command)
        return code == 0 and found.strip() == output.strip()


def test_each_command_of_the_page_prints_what_it_says(stack: RunningStack, tmp_path: Path) -> None:
    shell = Shell(stack, tmp_path)
    demo.run_main_job(stack.connect, stack.home / "demo", print)
    try:
        for kind, block in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if kind == "sh":
                code, _ = shell.run(_STACK.sub("", block))
                assert code == 0, block
                continue
            shown = _PROMPT.findall(block)
            assert shown, block
            for command, output in shown:
                eventually(lambda c=command, o=output: shell.prints(c, o) or None, within=2 * START, what=f"{command}: {output}")
    finally:
        for name in {"demo-lake", demo.SOURCE, demo.SINK} & set(stack.connect.connectors()):
            stack.connect.delete(name)
