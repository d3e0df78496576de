"""A server with the protocols of SQS and Kinesis for tests: moto with the changes of ``support.aws_service``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from sluiceway.connectors.aws.client import opened
from sluiceway.connectors.aws.connection import Account
from support.moto_server import MotoServer

REGION = "eu-west-1"
SECRET = "hush-hush-hush"


class AwsServer(MotoServer):
    """A server with queues and streams, as a context."""

    serve = (str(Path(__file__).with_name("aws_service.py")),)

    def __enter__(self) -> AwsServer:
        super().__enter__()
        self.sqs, self.kinesis = (opened(Account(service, REGION, self.url, "key", SECRET)) for service in ("sqs", "kinesis"))
        return self

    def config(self, service: str, url: str | None = None) -> dict[str, str]:
        """Return the connection keys of a connector's config."""
        return {
            f"{service}.region": REGION,
            f"{service}.endpoint.url": url or self.url,
            "aws.access.key.id": "key",
            "aws.secret.access.key": SECRET,
            "aws.reconnect.max.ms": "500",
        }

    # What the server is told.

    def ask(self, what: str, **given: Any) -> Any:
        """Ask the server for something of ``aws_service``."""
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.url}/-{what}", json.dumps(given).encode(), headers)  # noqa: S310 (our own server)
        with urlopen(request, timeout=30) as answer:  # noqa: S310 (our own server)
            return json.load(answer)

    def fail(self, operation: str, code: str, **given: Any) -> None:
        """Let the next request of an operation fail, or its entries of ``items`` or those ``having`` a text."""
        self.ask("fault", operation=operation, code=code, **given)

    def faults_left(self) -> int:
        return sum(each["times"] for each in self.ask("faults"))

    def requests(self, operation: str) -> list[int]:
        """Return the numbers of entries of the requests of an operation since the last ``clear``."""
        return [count for name, count in self.ask("requests") if name == operation]

    # Queues.

    def create_queue(self, name: str, **attributes: str) -> str:
        """Create a queue and return its URL."""
        if name.endswith(".fifo"):
            attributes = {"FifoQueue": "true", **attributes}
        return str(self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def send(self, url: str, *bodies: str, group: str | None = None) -> None:
        """Send messages, ten at a time."""
        for start in range(0, len(bodies), 10):
            entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies[start : start + 10])]
            if group is not None:
                entries = [
                    {**each, "MessageGroupId": group, "MessageDeduplicationId": f"{group}-{each['MessageBody']}"}
                    for each in entries
                ]
            answer = self.sqs.send_message_batch(QueueUrl=url, Entries=entries)
            assert not answer.get("Failed"), answer

    def counts(self, url: str) -> tuple[int, int]:
        """Return the numbers of messages that can be received, and that are hidden."""
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"]), int(found["ApproximateNumberOfMessagesNotVisible"])

    def take(self, url: str) -> list[dict[str, Any]]:
        """Receive and delete all messages, in order."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self.sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
            )
            messages = answer.get("Messages", [])
            if not messages:
                return found
            found += messages
            entries = [{"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(messages)]
            self.sqs.delete_message_batch(QueueUrl=url, Entries=entries)

    # Streams.

    def create_stream(self, name: str, shards: int = 1) -> None:
        self.kinesis.create_stream(StreamName=name, ShardCount=shards)

    def put(self, stream: str, *values: str | bytes, key: str | None = None) -> str:
        """Put records, whose keys are their values without ``key``. Return the last sequence number."""
        last = ""
        for start in range(0, len(values), 500):
            entries = [
                {"Data": each.encode() if isinstance(each, str) else each, "PartitionKey": key or str(each)}
                for each in values[start : start + 500]
            ]
            last = self.kinesis.put_records(StreamName=stream, Records=entries)["Records"][-1]["SequenceNumber"]
        return last

    def shards(self, stream: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.kinesis.list_shards(StreamName=stream)["Shards"]
        return found

    def open_shards(self, stream: str) -> list[str]:
        return [each["ShardId"] for each in self.shards(stream) if "EndingSequenceNumber" not in each["SequenceNumberRange"]]

    def split(self, stream: str, shard: str) -> None:
        """Split a shard in the middle."""
        [found] = [each["HashKeyRange"] for each in self.shards(stream) if each["ShardId"] == shard]
        middle = (int(found["StartingHashKey"]) + int(found["EndingHashKey"])) // 2
        self.kinesis.split_shard(StreamName=stream, ShardToSplit=shard, NewStartingHashKey=str(middle))

    def merge(self, stream: str, first: str, second: str) -> None:
        self.kinesis.merge_shards(StreamName=stream, ShardToMerge=first, AdjacentShardToMerge=second)

    def in_stream(self, stream: str) -> dict[str, list[dict[str, Any]]]:
        """Return all records by their shards."""
        found: dict[str, list[dict[str, Any]]] = {}
        for shard in self.shards(stream):
            given = {"StreamName": stream, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
            answer = {"NextShardIterator": self.kinesis.get_shard_iterator(**given)["ShardIterator"], "Records": [None]}
            records = found[shard["ShardId"]] = []
            while answer["Records"]:
                answer = self.kinesis.get_records(ShardIterator=answer["NextShardIterator"], Limit=10_000)
                records += answer["Records"]
        return found

    def counted(self, stream: str) -> Counter[bytes]:
        """Return how often each value is in a stream."""
        return Counter(each["Data"] for records in self.in_stream(stream).values() for each in records)
