"""Declares the option of all sinks that decides whether a null becomes its schema's default."""

from __future__ import annotations

from sluiceway.config.definition import ConfigKey, Importance, Type

REPLACE_NULLS = "replace.null.with.default"


def replace_nulls(group: str | None = None, *, default: bool = True) -> ConfigKey:
    """Return the option; ``default`` is what the sink that this one stands for does."""
    return ConfigKey(
        name=REPLACE_NULLS,
        type=Type.BOOLEAN,
        default=default,
        importance=Importance.LOW,
        group=group,
        doc="Whether a null of an optional field that has a default is written as the default. If false, it is written as null. "
        "To keep nulls, the converter and the transforms need the option of the same name as well.",
    )
