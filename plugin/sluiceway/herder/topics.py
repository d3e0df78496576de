"""Whether the topics that connectors use are told by REST. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicTracking:
    """``resettable``: they may be forgotten."""

    enabled: bool = True
    resettable: bool = True

    @classmethod
    def of(cls, raw: Mapping[str, str]) -> TopicTracking:
        """Read a worker's ``topic.tracking.enable`` and ``topic.tracking.allow.reset``."""
        return cls(*(raw.get(f"topic.tracking.{key}", "true").strip().lower() != "false" for key in ("enable", "allow.reset")))
