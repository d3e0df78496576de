"""The entry point of the ``sluiceway`` command. Its exit codes are in ``sluiceway.exit_codes``."""

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
    history,
    intervals,
    loggers,
    logs,
    migrate,
    new,
    offsets,
    package,
    patch,
    plugins,
    preview,
    rest,
    restart,
    signals,
    stack,
    standalone,
    top,
    topics,
    validate,
)
from sluiceway.cli.advice import advised
from sluiceway.cli.common import TOKEN_VARIABLE
from sluiceway.cli.troubleshooting import reference
from sluiceway.errors import ConnectError
from sluiceway.installation import install_command

# The help text lists them in this order.
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
    preview,
    patch,
    history,
    intervals,
    control,
    restart,
    offsets,
    signals,
    topics,
    dlq,
    migrate,
    new,
    plugins,
    package,
    loggers,
    logs,
    top,
    contexts,
    config,
    completion,
)

#: The extra that installs a package which the command needs only for some subcommands.
_EXTRAS = {**dict.fromkeys(("fastapi", "py4j", "pyspark", "starlette", "uvicorn"), "standalone"), "airflow": "airflow"}

_HINTS = {
    exit_codes.UNREACHABLE: "Start one with 'sluiceway up', or name another with --server or 'sluiceway contexts use'.",
    exit_codes.NOT_ALLOWED: f"To log in, see 'sluiceway contexts set --help', or put a token into ${TOKEN_VARIABLE}.",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of all subcommands. The parsed options have the subcommand's function in ``run``."""
    root = argparse.ArgumentParser(
        prog="sluiceway", description="Kafka Connect for Apache Airflow and Apache Spark.", allow_abbrev=False
    )
    root.add_argument("--version", action="version", version=f"sluiceway {__version__}")
    subparsers = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.register(subparsers)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. A failure prints one message to stderr, not a traceback."""
    root = parser()
    if completion.is_requested():
        completion.complete(root)
    return run_verb(root.parse_args(arguments))


def run_verb(options: argparse.Namespace) -> int:
    """Run the parsed subcommand and return its exit code, as ``main`` does."""
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except ConnectError as error:
        code = exit_codes.exit_code(error)
        text = advised(error, options)
        print("sluiceway:", *filter(None, (text, _HINTS.get(code), reference(text))), file=sys.stderr)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        code = exit_codes.FAILED
        needed = f"This command needs the Python package {package}. Run: {install_command(_EXTRAS[package])}"
        print(f"sluiceway: {needed}", reference(needed), sep="\n", file=sys.stderr)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has exited (``| head``). Without this, Python prints another error when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.FAILED
    return code


if __name__ == "__main__":
    sys.exit(main())
