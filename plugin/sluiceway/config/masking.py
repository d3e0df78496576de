"""Hides secrets in connector configs. No I/O."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from sluiceway.config.password import HIDDEN

# Types would need a validation request for each connector, so secrets are recognized by the names of their keys.
_SECRET = re.compile(
    r"passw|secret|token|credential|jaas|passphrase|private[._-]?key|api[._-]?key|access[._-]?key|(^|[._-])key\.pem$"
    r"|ssl\.keystore\.key$|basic\.auth\.user\.info",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(r"\.(url|uri|location|class|file|method|name)$|token\.endpoint", re.IGNORECASE)
_ONLY_REFERENCES = re.compile(r"(\$\{[^}]*\})+")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")


def is_secret(key: str) -> bool:
    """Return whether the name of a config key indicates a secret value."""
    return bool(_SECRET.search(key)) and not _NOT_SECRET.search(key)


def shown(key: str, value: str) -> str:
    """Replace a secret value, or the user and password in a URL, with ``[hidden]``. References to secrets are kept."""
    return _hidden(value) if is_secret(key) else _USER_INFO.sub(HIDDEN, value)


def masked(config: Mapping[str, str], passwords: Container[str] = ()) -> dict[str, str]:
    """Return a config with hidden secrets. ``passwords`` are keys that contain secrets regardless of their names."""
    return {key: _hidden(value) if key in passwords else shown(key, value) for key, value in config.items()}


def _hidden(value: str) -> str:
    return HIDDEN if value and not _ONLY_REFERENCES.fullmatch(value) else value
