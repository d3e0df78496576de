"""Runs the commands of a documentation page and compares what they print with the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from support.eventually import LIMIT, eventually
from support.stack import RunningStack

_BLOCK = re.compile(r"```(sh|console)\n(.*?)```", re.DOTALL)
_PROMPT = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
#: Commands that make the stack, which all tests of a folder share.
_STACK = re.compile(r"^(make .*|\. \.venv/bin/activate)$", re.MULTILINE)


class Shell:
    """Runs commands in a folder where ``.sluiceway`` is the stack's folder.

    Args:
        replaced: what stands in the place of texts of the page, such as its folder or ports.
        functions: shell functions, defined before each command.
    """

    def __init__(self, stack: RunningStack, folder: Path, replaced: Mapping[str, str], functions: str = "") -> None:
        (folder / ".sluiceway").symlink_to(stack.home)
        self._folder = folder
        self._replaced = replaced
        self._functions = functions
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # as with the virtual environment that the page activates
        self._env = {**os.environ, "PATH": path, "SLUICEWAY_SERVER": stack.addresses.rest, "SPARK_LOCAL_IP": "127.0.0.1"}

    def run(self, commands: str, *, within: float = 300) -> tuple[int, str]:
        """Run commands and return their exit code and output."""
        for old, new in self._replaced.items():
            commands = commands.replace(old, new)
        command = ["bash", "-euo", "pipefail", "-c", f"{self._functions}\n{commands}"]
        done = subprocess.run(
            command, cwd=self._folder, env=self._env, capture_output=True, text=True, timeout=within, check=False
        )
        print(commands, done.stdout, done.stderr[-3000:], sep="\n")
        return done.returncode, done.stdout

    def prints(self, command: str, output: str) -> bool:
        code, found = self.run(command)
        return code == 0 and found.strip() == output.strip()


class Commands(Protocol):
    """Runs the commands of a page."""

    def run(self, commands: str) -> tuple[int, str]: ...

    def prints(self, command: str, output: str) -> bool: ...


def run_page(page: Path, shell: Commands, *, within: float = LIMIT) -> None:
    """Run each command of a page; those with a prompt must at last print what the page shows."""
    for kind, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "sh":
            code, _ = shell.run(_STACK.sub("", block))
            assert code == 0, block
            continue
        shown = _PROMPT.findall(block)
        assert shown, block
        for command, output in shown:
            eventually(lambda c=command, o=output: shell.prints(c, o) or None, within=within, what=f"{command}: {output}")
