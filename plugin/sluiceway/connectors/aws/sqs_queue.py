"""The queues of SQS that a config names, and the requests for several of their messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigValue
from sluiceway.connectors.aws.client import aws_errors, code_of
from sluiceway.connectors.aws.connection import Account, account_of
from sluiceway.connectors.errors import LoginError, RefusedError
from sluiceway.errors import ConfigError

URL = "sqs.url"
SERVICE = "sqs"
MOST_AT_ONCE = 10
"""The most messages of a request."""
MOST_BYTES = 1_048_576
"""The most bytes of a message, and of all messages of a request."""
FIFO = ".fifo"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_REGION = re.compile(r"(?:^|\.)sqs(?:-fips)?\.([a-z0-9-]+)\.")
_NO_QUEUE = ("QueueDoesNotExist", "NonExistentQueue", "InvalidAddress")


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue that exists. ``visibility`` is in seconds: for so long others do not receive a message that was received."""

    url: str
    name: str
    visibility: int
    most_bytes: int

    @property
    def is_fifo(self) -> bool:
        return self.name.endswith(FIFO)


def is_url(named: str) -> bool:
    return "://" in named


def name_of(named: str) -> str:
    """Return the name of a queue that a config names by it or by its URL."""
    return named.rstrip("/").rpartition("/")[2]


def check_queue(name: str, value: ConfigValue) -> None:
    """Refuse what is neither the URL nor the name of a queue, or an empty list."""
    named = list(map(str, value)) if isinstance(value, list) else [str(value)]
    if not named:
        raise ConfigError(name, None, "must not be empty")
    for each in named:
        try:
            parts = urlsplit(each)
            is_known = not is_url(each) or (parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in each)
        except ValueError:
            is_known = False
        if not is_known or not _NAME.fullmatch(name_of(each)):
            told = None if "@" in each else each
            example = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
            raise ConfigError(name, told, f"must be the URL of a queue, such as {example}, or its name")
    if len(set(map(name_of, named))) < len(named):
        raise ConfigError(name, None, "must not have a queue twice")


def sqs_account(values: Mapping[str, ConfigValue], wait: float = 0.0) -> Account:
    """Return the account of parsed values. A queue's URL has the region."""
    value = values[URL]
    first = str(value[0] if isinstance(value, list) else value)
    region = _REGION.search(urlsplit(first).netloc) if is_url(first) else None
    return account_of(SERVICE, values, region=region[1] if region else None, wait=wait)


def queue_of(client: Any, account: Account, named: str) -> Queue:
    """Return the queue of a URL or a name. Raises ConfigError if there is none."""
    try:
        with aws_errors(account):
            url = named if is_url(named) else client.get_queue_url(QueueName=named)["QueueUrl"]
            found = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    except RefusedError as error:
        if error.code not in _NO_QUEUE:
            raise
        raise ConfigError(URL, named, f"is no queue of {account.where}. Create it, or check the account and the region") from None
    except LoginError as error:
        raise LoginError(f"{error} The queue is {named}.", error.key) from None
    return Queue(
        url=str(url),
        name=name_of(str(url)),
        visibility=int(found.get("VisibilityTimeout", 30)),
        most_bytes=min(MOST_BYTES, int(found.get("MaximumMessageSize", MOST_BYTES))),
    )


def numbered(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a request with their numbers as ids."""
    return [{"Id": str(number), **each} for number, each in enumerate(entries)]


def failures_of(answer: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """Return the failed entries of an answer by their numbers."""
    return {int(each["Id"]): each for each in answer.get("Failed", ())}


def failure_text(failure: Mapping[str, Any]) -> str:
    return f"{code_of(failure)}: {failure.get('Message', '')}"
