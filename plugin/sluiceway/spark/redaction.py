"""Chooses which settings Spark hides in its UI, its event log, and its own logs. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

REDACTION = "spark.redaction.regex"

# Spark's default hides secret, password, token, and access key.
_NAMES = r"(?i)secret|passw|pwd|token|credential|jaas|user\.info|(access|account|api|private|sas)[._-]?key"


def redaction(keys: Iterable[str] = ()) -> str:
    """Return Spark's ``spark.redaction.regex``: for telling names, and for the keys whose values were references to secrets."""
    return "|".join([_NAMES, *(rf"^\Q{key}\E$" for key in sorted(keys))])
