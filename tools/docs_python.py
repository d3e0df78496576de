"""Generates the reference pages of Python classes and functions from signatures and docstrings. No I/O except imports."""

from __future__ import annotations

import enum
import importlib
import inspect
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any

from docs_markdown import inline

API_INTRODUCTION = """
What an author of connectors, transforms, predicates, and converters imports.
[Write connectors](../how-to/write-connectors.md) shows how to use it. Everything else in the package may change.
"""

OPERATORS_INTRODUCTION = """
[Write connector DAGs](../how-to/write-connector-dags.md) shows how to use operators and sensors.
"""

TESTING_INTRODUCTION = """
The contracts and helpers of `sluiceway.testing`. [Write connectors](../how-to/write-connectors.md) shows how to use them.
Nothing here needs Kafka, Spark, or Airflow.
"""

_CONFIG = ("ConfigDef", "ConfigKey", "Type", "Importance", "Width")
_BLOCK = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):$")
_ENTRY = re.compile(r"^    (\*{0,2}\w[\w, ]*): (.*)$")
_TITLES = {"Args": "Arguments"}


def api_sections() -> Iterator[str]:
    """Yield the sections of ``sluiceway.api``, ``sluiceway.data``, and ``sluiceway.config.definition``."""
    for module in ("sluiceway.api", "sluiceway.data"):
        yield from _module(module)
    yield from _module("sluiceway.config.definition", _CONFIG)


def operator_sections() -> Iterator[str]:
    """Yield the sections of ``sluiceway.operators`` and ``sluiceway.sensors``. Imports Airflow."""
    # Airflow writes its configuration file when it is first imported.
    with tempfile.TemporaryDirectory(prefix="sluiceway-docs-") as home:
        os.environ.setdefault("AIRFLOW_HOME", home)
        for module in ("sluiceway.operators", "sluiceway.sensors"):
            yield from _module(module)


def testing_sections() -> Iterator[str]:
    """Yield the sections of ``sluiceway.testing``."""
    yield from _module("sluiceway.testing")


def _module(name: str, names: tuple[str, ...] = ()) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"## {name}\n\n{_described(module)}"
    for each in sorted(names or module.__all__, key=str.lower):
        member = getattr(module, each)
        if inspect.isclass(member):
            yield _class(each, member)
        elif inspect.isfunction(member):
            yield f"### {each}\n\n{_signature(each, member)}{_described(member)}"


def _class(name: str, cls: type) -> str:
    if issubclass(cls, enum.Enum):
        members = "".join(f"* `{member.name}` = `{member.value!r}`\n" for member in cls)
        return f"### {name}\n\n{_described(cls) if vars(cls).get('__doc__') else ''}{members}"
    methods = "".join(_methods(cls))
    signature = "" if cls.__init__ is object.__init__ or getattr(cls, "_is_protocol", False) else _signature(name, cls)
    return f"### {name}\n\n{signature}{_described(cls)}{methods}"


def _methods(cls: type) -> Iterator[str]:
    """Yield the public methods and properties that the class itself defines and describes."""
    for name, member in vars(cls).items():
        function = inspect.unwrap(member.__func__) if isinstance(member, (classmethod, staticmethod)) else member
        if name.startswith("_") or not getattr(function, "__doc__", None):
            continue
        if isinstance(function, property):
            yield f"**`{name}`** (property)\n\n{_described(function)}"
        elif inspect.isfunction(function):
            yield f"**`{name}{_parameters(function)}`**\n\n{_described(function)}"


def _signature(name: str, member: Any) -> str:
    parameters = _parameters(member)
    return f"```python\n{name}{parameters}\n```\n\n" if parameters else ""


def _parameters(member: Any) -> str:
    """Return the parameters without ``self``; annotations as they are written. Empty if there is no signature."""
    try:
        text = str(inspect.signature(member))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    return re.sub(r"\((self|cls)(, )?", "(", text, count=1)


def _described(member: Any) -> str:
    """Return the docstring as Markdown: paragraphs, lists, and Google's sections of arguments."""
    text = inspect.getdoc(member)
    return "".join(f"{each}\n\n" for each in _blocks((text or "").splitlines()))


def _blocks(lines: list[str]) -> Iterator[str]:
    paragraph: list[str] = []
    while lines:
        line = lines.pop(0)
        block = _BLOCK.match(line)
        if line.strip() and not block:
            paragraph.append(line)
            continue
        if paragraph:
            yield _paragraph(paragraph)
            paragraph = []
        if block:
            yield f"{_TITLES.get(block[1], block[1])}:"
            yield _entries(lines)
    if paragraph:
        yield _paragraph(paragraph)


def _paragraph(lines: list[str]) -> str:
    if lines[0].startswith(("- ", "* ")):
        items = re.split(r"(?:^|\n)[-*] ", "\n".join(lines))
        return "\n".join(f"* {inline(item)}" for item in items if item.strip())
    if all(line.startswith("    ") for line in lines) or lines[0].startswith(">>>"):
        return "```python\n" + "\n".join(line.removeprefix("    ") for line in lines) + "\n```"
    return inline(" ".join(lines))


def _entries(lines: list[str]) -> str:
    """Take the indented lines that follow a section's title off ``lines``; return them as a list."""
    found: list[list[str]] = []
    while lines and (lines[0].startswith("    ") or not lines[0].strip()):
        line = lines.pop(0)
        entry = _ENTRY.match(line)
        if entry:
            found.append([f"`{entry[1]}`: {entry[2]}"])
        elif line.strip() and found:
            found[-1].append(line.strip())
        elif line.strip():
            found.append([line.strip()])
    return "\n".join(f"* {inline(' '.join(entry))}" for entry in found)
