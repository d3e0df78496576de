"""``sluiceway completion``: what makes a shell complete the command's words, and connectors' names."""

from __future__ import annotations

import argparse
import os

from sluiceway.cli.common import Subparsers
from sluiceway.errors import MissingToolError

_ASKED = "_ARGCOMPLETE"  # argcomplete's way of calling a program


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "completion",
        help="print the shell's part of completion",
        description='In ~/.bashrc or ~/.zshrc: eval "$(sluiceway completion bash)"; in fish: sluiceway completion fish | source',
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print shell code."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise MissingToolError("Completion needs the Python package argcomplete: pip install argcomplete") from error
    print(shellcode(["sluiceway"], shell=options.shell))
    return 0


def asked_for() -> bool:
    """Whether this process was started by a shell that completes a line."""
    return _ASKED in os.environ


def complete(parser: argparse.ArgumentParser) -> None:
    """Tell the shell what may come next, and end the process."""
    import argcomplete

    argcomplete.autocomplete(parser, always_complete_options="long")
