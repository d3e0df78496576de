"""Entry point of the ``sluiceway`` command; ``exit_codes`` has what its exit codes say."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from sluiceway import __version__, exit_codes
from sluiceway.cli import (
    apply,
    broker,
    completion,
    config,
    contexts,
    control,
    demo,
    describe,
    dlq,
    get,
    loggers,
    logs,
    offsets,
    patch,
    plugins,
    rest,
    restart,
    stack,
    standalone,
    top,
    validate,
)
from sluiceway.cli.common import TOKEN_VARIABLE
from sluiceway.errors import ConnectError

# In the order of the help text.
_COMMANDS = (
    demo,
    stack,
    broker,
    rest,
    standalone,
    get,
    describe,
    apply,
    validate,
    patch,
    control,
    restart,
    offsets,
    dlq,
    plugins,
    loggers,
    logs,
    top,
    contexts,
    config,
    completion,
)

_HINTS = {
    exit_codes.UNREACHABLE: "'sluiceway up' starts one here; --server or 'sluiceway contexts use' names another.",
    exit_codes.NOT_ALLOWED: f"'sluiceway contexts set --help' tells how to log in; a token may also stand in ${TOKEN_VARIABLE}.",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of all subcommands; what it parses has the subcommand's function in ``run``."""
    root = argparse.ArgumentParser(
        prog="sluiceway", description="Kafka Connect for Apache Airflow and Apache Spark.", allow_abbrev=False
    )
    root.add_argument("--version", action="version", version=f"sluiceway {__version__}")
    subparsers = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.register(subparsers)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; a failure is one message on stderr, not a trace."""
    root = parser()
    if completion.asked_for():
        completion.complete(root)
    return run_verb(root.parse_args(arguments))


def run_verb(options: argparse.Namespace) -> int:
    """Run the subcommand that was parsed and return its exit code, as ``main`` does."""
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except ConnectError as error:
        code = exit_codes.exit_code(error)
        print(f"sluiceway: {error}{' ' + _HINTS[code] if code in _HINTS else ''}", file=sys.stderr)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (``| head``); Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.FAILED
    return code


if __name__ == "__main__":
    sys.exit(main())
