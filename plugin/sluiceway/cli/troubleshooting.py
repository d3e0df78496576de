"""Finds the section of the page Troubleshooting that treats an error. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PAGE = "docs/how-to/troubleshoot.md"

UNASSIGNED, FAILED = "unassigned", "failed"
"""Anchors of states, for errors of other kinds."""

_BY_TEXT = (
    ("no-answer", re.compile(r"Cannot reach the REST API at ")),
    ("class-not-found", re.compile(r"Failed to find any class that implements ")),
    ("port", re.compile(r"[Cc]annot listen on (port |\S+:)\d+")),
    ("fenced", re.compile(r"another driver has taken over")),
    ("missing-package", re.compile(r"No module named |the Python package \S+( is missing|\. Run: )")),
)
"""Anchors by what an error of that kind says; the first that fits counts."""


def section_of(text: str) -> str | None:
    """Return the anchor of the section about this error, None if there is none."""
    return next((anchor for anchor, words in _BY_TEXT if words.search(text)), None)


def reference(text: str) -> str | None:
    """Return the sentence that leads to the section about this error, None if there is none."""
    anchor = section_of(text)
    return anchor and _see(anchor)


def explained(part: Mapping[str, Any]) -> str:
    """Return the trace of a connector or task, as in a status, and where its state is treated unless it runs."""
    trace, state = part["trace"].rstrip(), part["state"].lower()
    return f"{trace}\n{_see(section_of(trace) or state)}" if state in (UNASSIGNED, FAILED) else trace


def _see(anchor: str) -> str:
    return f"See {PAGE}#{anchor}."
