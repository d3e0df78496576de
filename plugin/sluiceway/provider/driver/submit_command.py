"""Builds the command line of spark-submit, and masks secrets in it. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.provider.driver.spark_connection import SparkConnection
from sluiceway.provider.driver.submit_options import SubmitOptions

# Options that are passed as they are, in the order of the command line.
_OPTIONS = (
    "properties_file",
    "files",
    "py_files",
    "archives",
    "driver_class_path",
    "jars",
    "packages",
    "exclude_packages",
    "repositories",
    "num_executors",
    "total_executor_cores",
    "executor_cores",
    "executor_memory",
    "driver_memory",
    "proxy_user",
    "name",
)
_TICKET_CACHE = "spark.kerberos.renewal.credentials=ccache"

# The name of a value that is secret, to the end of its word or to its "=". It always matches to the end of a word, so that a long
# line takes linear time.
_SECRET = re.compile(r"(?:secret|password)[^\s=]*(?:=|\s+|$)", re.IGNORECASE)
_WORD = re.compile(r"\S*")
_CLOSING = {quote: re.compile(rf"{quote}(?=\s|$)") for quote in ("'", '"')}


def submit_command(
    connection: SparkConnection, options: SubmitOptions, conf: Mapping[str, Any], application: str, arguments: Sequence[str]
) -> list[str]:
    """Return the command line that submits an application.

    Args:
        connection: the Spark connection.
        options: the operator's options. Their ``env_vars`` are not passed here.
        conf: all Spark settings, the application's environment variables in cluster mode among them.
        application: the path of the application's Python file.
        arguments: its arguments.
    """
    command = [connection.binary, "--master", connection.master]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    if options.use_krb5ccache:
        command += ["--conf", _TICKET_CACHE]
    of_connection = {
        "--keytab": connection.keytab,
        "--principal": connection.principal,
        "--queue": connection.queue,
        "--deploy-mode": connection.deploy_mode,
    }
    of_operator = {f"--{each.replace('_', '-')}": getattr(options, each) for each in _OPTIONS}
    for option, value in {**of_operator, **of_connection}.items():
        if value:
            command += [option, str(value)]
    flags = {"--verbose": options.verbose, "--load-spark-defaults": options.load_spark_defaults}
    command += [flag for flag, given in flags.items() if given]
    return [*command, application, *arguments]


def masked(command: str | Sequence[str]) -> str:
    """Return a command or a line of output in which the values of names with ``secret`` or ``password`` are ``******``."""
    text = command if isinstance(command, str) else " ".join(command)
    shown: list[str] = []
    done = 0
    unclosed: dict[str, int] = {}
    while (name := _SECRET.search(text, done)) is not None:
        begin, end = _value(text, name.end(), unclosed)
        shown += [text[done:begin], "******" if end > begin else ""]
        done = end
    return "".join([*shown, text[done:]])


def _value(text: str, at: int, unclosed: dict[str, int]) -> tuple[int, int]:
    """Return where the value at a position begins and ends: in quotes that are followed by a blank, else at the next blank.

    ``unclosed`` keeps to where a search has found no such quote, because a search from each name takes quadratic time.
    """
    quote = text[at : at + 1]
    if quote in _CLOSING and at >= unclosed.get(quote, 0):
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        closing = _CLOSING[quote].search(text, at + 1, line_end)
        if closing is not None:
            return at + 1, closing.start()
        unclosed[quote] = line_end
    word = _WORD.match(text, at)
    return at, word.end() if word is not None else at
