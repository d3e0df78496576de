"""Makes config keys that connectors of several systems have. No I/O."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, Range
from sluiceway.errors import ConfigError

text = functools.partial(ConfigKey, type=Type.STRING, importance=Importance.MEDIUM)
flag = functools.partial(ConfigKey, type=Type.BOOLEAN, importance=Importance.LOW)
secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, importance=Importance.MEDIUM)


def whole(name: str, default: int, low: int, group: str, doc: str, *, importance: Importance = Importance.LOW) -> ConfigKey:
    """Return the key of a whole number from ``low`` on."""
    return ConfigKey(
        name=name,
        type=Type.LONG,
        default=default,
        validator=Range(low, 2**31 - 1),
        importance=importance,
        group=group,
        doc=doc,
    )


def unreachable_key(group: str, servers: str) -> ConfigKey:
    """Return the key of the limit of an ``Outage``; ``servers`` completes the sentence ``Milliseconds to wait for ...``."""
    return ConfigKey(
        name=UNREACHABLE_MS,
        type=Type.LONG,
        default=3_600_000,
        validator=Range(-1, 2**53),
        importance=Importance.LOW,
        group=group,
        doc=f"Milliseconds to wait for {servers} that cannot be reached before the task fails; -1 is unlimited.",
    )


def unreachable_seconds(values: Mapping[str, ConfigValue]) -> float | None:
    """Return the parsed value of ``unreachable_key`` in seconds, None if it is unlimited."""
    milliseconds = int(str(values[UNREACHABLE_MS]))
    return None if milliseconds < 0 else milliseconds / 1000


def refused_keys(reasons: Mapping[str, str], group: str = "Connection") -> list[ConfigKey]:
    """Return keys of Java connectors that have no counterpart, so that a config that sets one is refused with the reason."""

    def refusal(reason: str) -> Check:
        def refuse(name: str, value: ConfigValue) -> None:
            if value:
                raise ConfigError(name, None, f"has no counterpart: {reason}. Remove it")

        return Check(refuse, "unset")

    return [
        ConfigKey(
            name=name,
            type=Type.STRING,
            default=None,
            validator=refusal(reason),
            importance=Importance.LOW,
            group=group,
            doc=f"Has no counterpart: {reason}.",
            internal=True,
        )
        for name, reason in reasons.items()
    ]
