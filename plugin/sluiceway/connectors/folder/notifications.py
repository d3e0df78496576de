"""Receives S3's event notifications from a queue of SQS, as hints which objects are new. Runs on executors.

The scan finds everything without them: a hint makes a task look at an object at once. All tasks receive from one queue. SQS gives
a message to any of them, so a task makes one that is for another task visible again, and then waits, so that others receive it.
"""

from __future__ import annotations

import enum
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote_plus, urlsplit

from sluiceway.connectors.files.store_check import answered

log = logging.getLogger(__name__)

_MOST_MESSAGES = 10  # that SQS gives at once
_WAIT_SECONDS = 10
_HIDDEN_SECONDS = 120
"""The time for which other tasks do not receive a message that a task looks at, or that it has received before it died."""
_RETRY_SECONDS = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 20.0
_REGION = re.compile(r"(?:^|\.)sqs(?:-fips)?\.([a-z0-9-]+)\.")


class Share(enum.Enum):
    """Whose a path is."""

    MINE = enum.auto()
    ANOTHERS = enum.auto()
    NOBODYS = enum.auto()


class _Message(NamedTuple):
    id: str
    receipt: str
    paths: Sequence[str]
    """The objects that it says are new, as ``s3://bucket/key``."""


def new_objects(body: str) -> list[str] | None:
    """Return the objects that a message says are new, as ``s3://bucket/key``; None if it is none of S3's.

    It may come from S3, from SNS with an envelope or without one, or from EventBridge, where keys are not URL-encoded.
    """
    try:
        found = json.loads(body)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    if isinstance(found.get("Message"), str) and "TopicArn" in found:
        return new_objects(found["Message"])
    try:
        return list(_objects(found))
    except (KeyError, TypeError, AttributeError):
        return None


def _objects(event: Mapping[str, Any]) -> Iterator[str]:
    """Yield the new objects of an event. Raises KeyError, TypeError, or AttributeError if it is none of S3's."""
    if event.get("source") == "aws.s3":
        if event["detail-type"] == "Object Created":
            yield f"s3://{event['detail']['bucket']['name']}/{event['detail']['object']['key']}"
    elif event.get("Event") != "s3:TestEvent":  # which S3 sends when a queue is set up
        for each in event["Records"]:
            path = f"s3://{each['s3']['bucket']['name']}/{unquote_plus(each['s3']['object']['key'])}"
            if each["eventName"].removeprefix("s3:").startswith("ObjectCreated:"):
                yield path


def queue_client(url: str, options: Mapping[str, Any]) -> Any:
    """Return a client of a queue's server, with the credentials of s3fs' ``options``. It comes with s3fs."""
    import botocore.config  # type: ignore[import-untyped]
    import botocore.session  # type: ignore[import-untyped]

    parts = urlsplit(url)
    region = _REGION.search(parts.netloc)
    return botocore.session.Session().create_client(
        "sqs",
        region_name=region[1] if region else options["client_kwargs"]["region_name"],
        endpoint_url=f"{parts.scheme}://{parts.netloc}",
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
        config=botocore.config.Config(connect_timeout=10, read_timeout=_WAIT_SECONDS + 20),
    )


def queue_refusals(url: str, options: Mapping[str, Any]) -> list[str]:
    """Return why a queue cannot be used, nothing if it can. Waits a while for its answer."""
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    try:
        answered(lambda: queue_client(url, options).get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"]), url)
    except (BotoCoreError, ClientError) as error:
        return [f"Cannot use the queue {url}: {error}"]
    return []


class Hints:
    """The objects that a task should look at. It has a thread, which deletes a message when the task has looked.

    Args:
        url: the queue's URL.
        client: makes the client of the queue.
        share: tells whose a path is.
        wake: called when there are hints, on the thread.
    """

    def __init__(self, url: str, client: Callable[[], Any], share: Callable[[str], Share], wake: Callable[[], None]) -> None:
        self._url = url
        self._make_client = client
        self._client: Any = None
        self._share = share
        self._wake = wake
        self._paths: frozenset[str] = frozenset()
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._said: set[str] = set()
        self._pause = 0.0
        self._thread = threading.Thread(target=self._run, name="s3-notifications", daemon=True)
        self._thread.start()

    def paths(self) -> frozenset[str]:
        """Return the paths to look at, until ``done``."""
        return self._paths

    def done(self) -> None:
        """Say that the task has looked at the paths."""
        with self._changed:
            self._paths = frozenset()
            self._changed.notify_all()

    def close(self) -> None:
        """Receive no more. A request may take some seconds more, whose messages are made visible again."""
        with self._changed:
            self._stopped.set()
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._client = self._client or self._make_client()
                self._turn()
            except Exception as error:  # noqa: BLE001 (botocore raises classes of its own)
                self._say_once(f"Cannot receive from {self._url}, so that objects are found by scans only: {error}")
                self._pause = _RETRY_SECONDS
            self._stopped.wait(self._pause)

    def _turn(self) -> None:
        """Receive messages, and wait until the task has looked at its objects."""
        messages = self._receive()
        if self._stopped.is_set():
            self._release(messages)
            return
        shares = {path: self._share(path) for each in messages for path in each.paths}
        own: list[_Message] = []
        others: list[_Message] = []
        for each in messages:
            # One with objects of several tasks, which S3 does not send, is that of the first one. Scans find the others.
            owner = next((shares[path] for path in each.paths if shares[path] is not Share.NOBODYS), Share.NOBODYS)
            (others if owner is Share.ANOTHERS else own).append(each)
        self._release(others)
        if self._look({path for path, share in shares.items() if share is Share.MINE}):
            self._delete(own)
        else:
            self._release(own)
        only_others = others and not own
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE) if only_others else 0.0

    def _look(self, paths: set[str]) -> bool:
        """Let the task look at objects. Return whether it has."""
        with self._changed:
            self._paths = frozenset(paths)
        if paths:
            self._wake()
        with self._changed:
            self._changed.wait_for(lambda: not self._paths or self._stopped.is_set())
            return not self._paths

    def _receive(self) -> list[_Message]:
        answer = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=_MOST_MESSAGES,
            WaitTimeSeconds=_WAIT_SECONDS,
            VisibilityTimeout=_HIDDEN_SECONDS,
        )
        found = []
        for each in answer.get("Messages", ()):
            paths = new_objects(each["Body"])
            if paths is None:
                self._say_once(f"{self._url} has messages that are not S3's, which are left there")
            else:
                found.append(_Message(each["MessageId"], each["ReceiptHandle"], tuple(paths)))
        return found

    def _delete(self, messages: Sequence[_Message]) -> None:
        if messages:
            entries = [{"Id": str(number), "ReceiptHandle": each.receipt} for number, each in enumerate(messages)]
            self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)

    def _release(self, messages: Sequence[_Message]) -> None:
        """Let others receive messages."""
        if messages:
            entries = [
                {"Id": str(number), "ReceiptHandle": each.receipt, "VisibilityTimeout": 0} for number, each in enumerate(messages)
            ]
            self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)

    def _say_once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            log.warning("%s", message)
