"""Defines the keys of StatsdSource, and its options. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.definition import ConfigDef, Importance
from sluiceway.config.validators import OneOf
from sluiceway.connectors.listening import keys as listening
from sluiceway.connectors.listening.keys import Listening

PREFIX = "statsd."
PORT = "statsd.port"
LINES = "statsd.buffer.lines"
BYTES = "statsd.buffer.bytes"
PROTOCOL = "statsd.protocol"
UDP, TCP, BOTH = "udp", "tcp", "both"
RECEIVE_BYTES = "statsd.udp.receive.bytes"
FLUSH_MS = "statsd.flush.ms"
FLUSH_SERIES = "statsd.flush.series"

_AGGREGATION = "Aggregation"

STATSD = ConfigDef(
    [
        *listening.listening_keys(
            PREFIX,
            8125,
            "lines",
            "packets of UDP are dropped and counted, and connections of TCP are not read until there is room",
        ),
        listening.text(
            name=PROTOCOL,
            default=UDP,
            validator=OneOf((UDP, TCP, BOTH)),
            importance=Importance.HIGH,
            group="Listening",
            doc="udp, tcp, or both, on the same port. Lines of TCP end with a newline.",
        ),
        listening.number(
            RECEIVE_BYTES,
            4 * 1024 * 1024,
            4096,
            "Listening",
            "The bytes of UDP that the operating system holds until they are read. It may allow less: net.core.rmem_max.",
        ),
        listening.number(
            FLUSH_MS,
            0,
            0,
            _AGGREGATION,
            "Milliseconds for which lines of the same series are aggregated into one record. 0: a record for each line.",
        ),
        listening.number(
            FLUSH_SERIES,
            100_000,
            1,
            _AGGREGATION,
            f"The most series, and members of sets, of an interval of {FLUSH_MS}, and the most gauges whose values are kept. "
            "Lines of more series are dropped and counted.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class StatsdOptions:
    """The values of a config. ``flush`` is in milliseconds, 0 for none."""

    listening: Listening
    protocols: tuple[str, ...]
    receive_bytes: int
    flush: int
    flush_series: int


def statsd_options(config: Mapping[str, str]) -> StatsdOptions:
    """Return the options of a config. Raises ConfigError."""
    values = STATSD.parse(config)
    protocol = str(values[PROTOCOL])
    return StatsdOptions(
        listening=listening.listening_of(values, PREFIX, "lines"),
        protocols=(UDP, TCP) if protocol == BOTH else (protocol,),
        receive_bytes=listening.whole(values, RECEIVE_BYTES),
        flush=listening.whole(values, FLUSH_MS),
        flush_series=listening.whole(values, FLUSH_SERIES),
    )
