"""Keeps secrets in connectors' configs from being shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from sluiceway.config.password import HIDDEN

# The server tells types only with a validation, which costs a request for each connector; names say it as well.
_SECRET = re.compile(
    r"passw|secret|token|credential|jaas|passphrase|private[._-]?key|api[._-]?key|access[._-]?key|(^|[._-])key\.pem$"
    r"|ssl\.keystore\.key$|basic\.auth\.user\.info",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(r"\.(url|uri|location|class|file|method|name)$|token\.endpoint", re.IGNORECASE)
_ONLY_REFERENCES = re.compile(r"(\$\{[^}]*\})+")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")


def is_secret(key: str) -> bool:
    """Whether the value of a config key is not to be shown, by its name."""
    return bool(_SECRET.search(key)) and not _NOT_SECRET.search(key)


def shown(key: str, value: str) -> str:
    """Return a value as it may be shown: a secret is ``[hidden]``, a reference to one is shown, and so is the rest of a URL."""
    return _hidden(value) if is_secret(key) else _USER_INFO.sub(HIDDEN, value)


def masked(config: Mapping[str, str], passwords: Container[str] = ()) -> dict[str, str]:
    """Return a config as it may be shown. ``passwords`` are keys that are known to hold secrets, whatever their names."""
    return {key: _hidden(value) if key in passwords else shown(key, value) for key, value in config.items()}


def _hidden(value: str) -> str:
    return HIDDEN if value and not _ONLY_REFERENCES.fullmatch(value) else value
