"""Says which captures of a database's log can be watched for changes. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

_HEARTBEAT = "heartbeat.action.query"


def watch_refusal(config: Mapping[str, str]) -> str:
    """Return why the log cannot be watched; empty if it can."""
    if config.get(_HEARTBEAT):
        return f"each run would write to the log with {_HEARTBEAT}, and so start the next one. Remove that key"
    return ""
