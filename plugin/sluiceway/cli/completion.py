"""``sluiceway completion``: shell completion of commands, options and connector names."""

from __future__ import annotations

import argparse
import os

from sluiceway.cli.common import Subparsers
from sluiceway.errors import MissingToolError

_COMPLETING = "_ARGCOMPLETE"  # set by argcomplete when a shell asks for completions


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "completion",
        help="print the completion script of a shell",
        description='In ~/.bashrc or ~/.zshrc: eval "$(sluiceway completion bash)"; in fish: sluiceway completion fish | source',
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the shell code that turns completion on."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise MissingToolError("Completion needs the Python package argcomplete. Install it: pip install argcomplete") from error
    print(shellcode(["sluiceway"], shell=options.shell))
    return 0


def is_requested() -> bool:
    """Return whether a shell started this process to complete a command line."""
    return _COMPLETING in os.environ


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the completions for the shell and exit."""
    import argcomplete

    argcomplete.autocomplete(parser, always_complete_options="long")
