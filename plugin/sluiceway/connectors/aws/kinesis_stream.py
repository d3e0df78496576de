"""Asks for a stream of Kinesis and its shards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sluiceway.config.definition import ConfigValue
from sluiceway.connectors.aws.client import aws_errors
from sluiceway.connectors.aws.connection import Account
from sluiceway.connectors.aws.kinesis_shards import Shard
from sluiceway.connectors.errors import LoginError, RefusedError
from sluiceway.errors import ConfigError

SERVICE = "kinesis"
STREAM_KEY = "kinesis.stream"
NO_RESOURCE = "ResourceNotFoundException"
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
_KIB = 1024


@dataclass(frozen=True, slots=True)
class StreamState:
    """A stream. ``retention`` is in seconds, ``most_bytes`` those of a record with its partition key."""

    retention: int
    most_bytes: int


def check_stream(name: str, value: ConfigValue) -> None:
    """Refuse names that no stream can have."""
    if not _NAME.fullmatch(str(value)):
        raise ConfigError(name, value, "must be the name of a stream: letters, digits, '.', '_', and '-'")


def stream_state(client: Any, account: Account, stream: str) -> StreamState:
    """Return what a stream is like. Raises ConfigError if there is none."""
    try:
        with aws_errors(account):
            found = client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
    except RefusedError as error:
        if error.code != NO_RESOURCE:
            raise
        message = f"is no stream of {account.where}. Create it, or check the account and the region"
        raise ConfigError(STREAM_KEY, stream, message) from None
    except LoginError as error:
        raise LoginError(f"{error} The stream is {stream}.", error.key) from None
    return StreamState(
        retention=int(found["RetentionPeriodHours"]) * 3600,
        most_bytes=int(found.get("MaxRecordSizeInKiB") or _KIB) * _KIB,
    )


def shards_of(client: Any, account: Account, stream: str) -> list[Shard]:
    """Return the shards of a stream whose records are not all trimmed, by their ids."""
    found: list[Shard] = []
    given = {"StreamName": stream}
    while True:
        with aws_errors(account):
            answer = client.list_shards(**given)
        found += map(Shard.of, answer["Shards"])
        if not answer.get("NextToken"):
            return sorted(found, key=lambda each: each.id)
        given = {"NextToken": answer["NextToken"]}
