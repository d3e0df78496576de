"""The keys that published classes define which Python implements, recorded from their jars (``data/config_keys.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

_FILE = Path(__file__).with_name("data") / "config_keys.json"


def recorded() -> dict[str, list[str]]:
    """Return the keys of each class, sorted."""
    document: dict[str, list[str]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return document


def record(found: Mapping[str, Sequence[str]]) -> None:
    """Record the keys of classes."""
    _FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
