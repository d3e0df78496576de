"""Generates the reference page of the command line from its argparse parser, and from examples that tests run."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from docs_markdown import cell, code, table

from sluiceway.cli.main import parser

INTRODUCTION = """
[Use the command line](../how-to/use-the-command-line.md) shows how to use the commands.
`sluiceway COMMAND --help` prints the same.

## Common options

These options are not repeated below. Commands that talk to the REST API take `--server` and `--context`; commands
that print data take `--output`.

| Option | Default | Meaning |
| --- | --- | --- |
| `-h`, `--help` | | print help |
| `--server URL` | `$SLUICEWAY_SERVER`, the context, or the local stack | one or several addresses, separated by commas |
| `--context NAME` | `$SLUICEWAY_CONTEXT` | a context of `sluiceway contexts` |
| `-o`, `--output` | `table` | `table`, `json`, or `yaml` |

## Environment variables

| Variable | Meaning |
| --- | --- |
| `SLUICEWAY_SERVER` | default of `--server` |
| `SLUICEWAY_CONTEXT` | default of `--context` |
| `SLUICEWAY_TOKEN` | a bearer token that goes with every request |
| `SLUICEWAY_HOME` | the folder of the local stack (default: `.sluiceway`) |
| `KAFKA_JVM_PERFORMANCE_OPTS` | further options for the JVM of the local broker, such as `-Xmx2g` |

## Exit codes

| Code | Meaning |
| --- | --- |
| 0 | success |
| 1 | failed |
| 2 | wrong usage |
| 3 | refused: a config with errors, an impossible offset, a connector that is not stopped |
| 4 | no such connector, task, version, plugin, topic, log, or context |
| 5 | the REST API cannot be reached |
| 6 | not allowed: the server asks for a login, or for another one |
| 7 | conflict with the current state, such as a name that is taken |
| 8 | `diff` found something that `apply` would change |
| 130 | interrupted |

`migrate` returns 0 if all connectors can move or have moved, 1 if some cannot, and 2 for any error.
"""

EXAMPLES = Path(__file__).with_name("cli_examples.md")
_EXAMPLE = re.compile(r"^## ([^\n]+)\n\n(.+?)\n(?=\n## |\Z)", re.DOTALL | re.MULTILINE)

_COMMON = {"help", "server", "context"}


def sections() -> Iterator[str]:
    """Yield a section for each command, in the order of ``sluiceway --help``. Raises ValueError for an example of no command."""
    left = examples()
    yield from _commands(parser(), left)
    if left:
        raise ValueError(f"{EXAMPLES} has examples of commands that do not exist: {', '.join(left)}")


def examples() -> dict[str, str]:
    """Return the examples by their commands."""
    return dict(_EXAMPLE.findall(EXAMPLES.read_text(encoding="utf-8")))


def _commands(parent: argparse.ArgumentParser, left: dict[str, str]) -> Iterator[str]:
    for action in parent._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, command in action.choices.items():
            if name in helps:  # an alias has no help of its own
                example = left.pop(command.prog, "")
                yield _section(command, helps[name]) + (f"\n{example}\n" if example else "")
                yield from _commands(command, left)


def _section(command: argparse.ArgumentParser, summary: str) -> str:
    rows = [_row(command, action) for action in command._actions if _shown(action)]
    options = table(("Argument", "Default", "Meaning"), rows) if rows else ""
    return f"## {command.prog}\n\n{cell(summary[:1].upper() + summary[1:])}.\n\n{options}"


def _shown(action: argparse.Action) -> bool:
    is_output = action.dest == "output" and "yaml" in (action.choices or ())
    return action.dest not in _COMMON and not is_output and not isinstance(action, argparse._SubParsersAction)


def _row(command: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str, str]:
    value = "" if action.nargs == 0 else _value(action)
    if action.option_strings:
        name = ", ".join(f"{option} {value}".strip() for option in action.option_strings)
    else:
        name = f"[{value}]" if action.nargs in ("?", "*") else value
    default = "" if action.default in (None, False, argparse.SUPPRESS) or action.default == [] else code(str(action.default))
    formatter = command._get_formatter()
    return code(name), default, cell(formatter._expand_help(action)) if action.help else ""


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(str(choice) for choice in action.choices) + "}"
    return action.dest.upper()
