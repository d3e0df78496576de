"""Rewrites a server's error for the command line: its own commands instead of requests, and names that are alike."""

from __future__ import annotations

import argparse
import difflib
import functools
import re
from collections.abc import Iterable, Sequence

from sluiceway.cli.common import client
from sluiceway.config.similar_classes import connector_question, with_similar_classes
from sluiceway.errors import ConnectError

_STOP = re.compile(
    r" This can be done for the specified connector by issuing a 'PUT' request to the '/connectors/(.+)/stop' endpoint"
)
_ENDPOINT = re.compile(r"\nYou can also find the above list of errors at the endpoint `/connector-plugins/[^`]*`")
_COUNTED = re.compile(r"contains the following \d+ error\(s\):")
_CLASSES = re.compile(r"(matches (\S+)), available connectors are: (.*)", re.DOTALL)
_CONNECTOR = re.compile(r"[Cc]onnector:? (\S+?)(?: not found|$)")
_TASK = re.compile(r"Unknown task: (.+)-\d+$")
_OF_TASK = re.compile(r"(.+)-(\d+)")
_PLUGINS = (
    "'sluiceway get plugins' lists the installed connectors. One of your own must be installed, or in PYTHONPATH or plugin.path, "
    "when Sluiceway starts."
)
_EXACTLY_ONCE = "This worker does not have exactly-once source support enabled."
_LEVELS = " Use TRACE, DEBUG, INFO, WARN, ERROR, FATAL, or OFF."
_NOT_FOUND = 404


def advised(error: ConnectError, options: argparse.Namespace) -> str:
    """Return the message of an error for the user of a command."""
    text = _STOP.sub(lambda found: f" Run: sluiceway stop {found[1]}", str(error))
    text = _CLASSES.sub(lambda found: f"{found[1]}.{connector_question(found[2], found[3])} {_PLUGINS}", text)
    text = with_worker_key(with_similar_classes(text, functools.partial(_installed, options)))
    if _ENDPOINT.search(text):
        text = _once(_ENDPOINT.sub("", text))
    if getattr(error, "status", 0) == _NOT_FOUND:
        text += _LEVELS if text.startswith("invalid log level ") else _alike_connectors(text, options)
    return text


def with_worker_key(text: str) -> str:
    """Return an error's text with the key of the worker file that a config needs."""
    return text.replace(_EXACTLY_ONCE, f"{_EXACTLY_ONCE} Set exactly.once.source.support=enabled in the worker file.")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the most similar name, empty if none is alike."""
    by_folded = {each.casefold(): each for each in known}
    alike = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return f"Did you mean {by_folded[alike[0]]}?" if alike else ""


def _installed(options: argparse.Namespace, kind: str) -> list[str]:
    """Return the plugins of a type on the server, or on this machine if the command asks none."""
    if not hasattr(options, "server"):
        from sluiceway.herder.plugin_classes import installed_names

        return installed_names(kind)
    try:
        with client(options) as api:
            return [each["class"] for each in api.plugins(connectors_only=False) if each["type"] == kind]
    except ConnectError:
        return []


def _once(text: str) -> str:
    """Return the message with each error once: one that concerns two keys is there for each of them."""
    first, *errors = text.splitlines()
    unique = list(dict.fromkeys(errors))
    return "\n".join([_COUNTED.sub(f"contains the following {len(unique)} error(s):", first), *unique])


def _alike_connectors(text: str, options: argparse.Namespace) -> str:
    if task := _TASK.search(text):
        return f". 'sluiceway get tasks {task[1]}' lists its tasks."
    found = _CONNECTOR.search(text)
    if found is None or not hasattr(options, "server"):
        return ""
    try:
        with client(options) as api:
            names: Sequence[str] = api.connectors()
    except ConnectError:
        return ""
    task = _OF_TASK.fullmatch(found[1])
    if task and task[1] in names:
        return f". It is a task of connector {task[1]}: 'sluiceway restart {task[1]} --task {task[2]}' restarts it."
    question = did_you_mean(found[1].rstrip("."), names) or "'sluiceway get connectors' lists the names."
    return f" {question}" if text.endswith(".") else f". {question}"
