"""The form in which metrics travel from tasks to drivers and to the REST API: Kafka Connect's JMX beans. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sluiceway.errors import DataError

CONNECT = "kafka.connect"
OWN = "sluiceway"
"""The domain of metrics that Kafka Connect does not have."""

Value = float | str


@dataclass(frozen=True, slots=True)
class Bean:
    """Metrics of one thing, such as a task.

    Attributes:
        domain: ``kafka.connect``, ``kafka.consumer``, ``kafka.producer``, or ``sluiceway``.
        type: the group of metrics, such as ``source-task-metrics``.
        tags: tell the thing apart from others of its type, such as ``connector`` and ``task``.
        values: by the metrics' names. NaN is a value that is not known yet, as in Kafka.
    """

    domain: str
    type: str
    tags: Mapping[str, str]
    values: Mapping[str, Value]

    @property
    def key(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Identifies the thing."""
        return self.domain, self.type, tuple(sorted(self.tags.items()))


def encode_beans(beans: Iterable[Bean]) -> bytes:
    return json.dumps([[bean.domain, bean.type, dict(bean.tags), dict(bean.values)] for bean in beans]).encode()


def decode_beans(text: bytes) -> list[Bean]:
    """Raises DataError for bytes that no process of this version has written."""
    try:
        return [
            Bean(str(domain), str(kind), {str(key): str(value) for key, value in tags.items()}, _values(values))
            for domain, kind, tags, values in json.loads(text)
        ]
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"The metrics cannot be read: {error!r}") from error


def _values(values: Mapping[str, object]) -> dict[str, Value]:
    return {str(name): value if isinstance(value, str) else float(value) for name, value in values.items()}  # type: ignore[arg-type]
