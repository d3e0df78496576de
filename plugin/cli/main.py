"""Entry point of the ``sluiceway`` command.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted; 3 from ``standalone`` for a refused connector, as Kafka's script.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from sluiceway import __version__
from sluiceway.cli import apply, broker, config, control, demo, dlq, get, rest, stack, standalone
from sluiceway.errors import ConnectError

_COMMANDS = (demo, stack, broker, rest, standalone, get, apply, control, dlq, config)
_INTERRUPTED = 130


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
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except ConnectError as error:
        print(f"sluiceway: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (``| head``); Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
