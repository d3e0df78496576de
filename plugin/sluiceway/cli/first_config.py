"""Makes a config to begin with from the definition of a connector's options. No I/O."""

from __future__ import annotations

import re
from typing import Any

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance

_SENTENCE = re.compile(r"^(.*?[.!?])(?:\s|$)", re.DOTALL)
_MOST_LETTERS = 100


def first_config(class_name: str, kind: str, definition: ConfigDef) -> dict[str, Any]:
    """Return a connector in the form of the REST API, with placeholders for what its user must know.

    These are the required options, and the important ones that have no value by default.

    Args:
        class_name: the full name of the connector's class.
        kind: source or sink.
        definition: the connector's own options.
    """
    config = {"connector.class": class_name, "tasks.max": "1"}
    known = {"name", *config}
    if kind == "sink":
        config["topics"] = "<topics, separated by commas>"
        known |= {"topics", "topics.regex"}
    config |= {key.name: _placeholder(key) for key in definition if key.name not in known and _is_needed(key)}
    simple = re.split(r"[.$]", class_name)[-1].removesuffix("Connector")
    return {"name": re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", simple).lower(), "config": config}


def _is_needed(key: ConfigKey) -> bool:
    if key.internal:
        return False
    return key.required or (key.importance is Importance.HIGH and key.default in (None, ""))


def _placeholder(key: ConfigKey) -> str:
    text = " ".join(key.doc.split())
    match = _SENTENCE.match(text)
    short = (match[1] if match else text).rstrip(".")
    return f"<{key.type.value.lower()}{': ' if short else ''}{short[:_MOST_LETTERS]}>"
