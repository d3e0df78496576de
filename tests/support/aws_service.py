"""The program of a server with the protocols of SQS and Kinesis: moto with what it lacks of them, and faults that tests ask for.

Of AWS, moto 5.2.5 does not imitate (read in its code, and seen in the tests of this module's users):

* a closed shard's end: its iterators never end; moto copies the records of split and merged shards into the new ones, and puts
  new records into closed shards;
* sequence numbers that rise over all shards of a stream;
* retention: nothing is ever trimmed, and no iterator expires;
* failed entries of PutRecords, SendMessageBatch and DeleteMessageBatch, throttling, and other answers of a service in trouble;
* locks: two requests at once may receive the same message.

A POST to a path that begins with ``/-`` does what the test asks for; see ``_control``. FIFO groups that are hidden while one of
their messages is, visibility timeouts, and the deduplication of messages that are still in the queue are moto's own.
"""

from __future__ import annotations

import io
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

LOCK = threading.RLock()
REQUEST = threading.local()
FAULTS: list[dict[str, Any]] = []
REQUESTS: list[tuple[str, int]] = []
_FIRST = 49_600_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000
_NUMBERS = itertools.count(_FIRST)
_POLL = 0.02
_LISTS = {
    "PutRecords": "Records",
    "SendMessageBatch": "Entries",
    "DeleteMessageBatch": "Entries",
    "ChangeMessageVisibilityBatch": "Entries",
}


def patch_kinesis() -> None:
    """Give Kinesis closed shards and long sequence numbers."""
    models: Any = import_module("moto.kinesis.models")
    responses: Any = import_module("moto.kinesis.responses")

    def put(self: Any, partition_key: str, data: str, explicit_hash_key: str) -> str:
        number = next(_NUMBERS)
        self.records[number] = models.Record(partition_key, data, number, explicit_hash_key)
        return str(number)

    def shard_for_key(self: Any, partition_key: str, explicit_hash_key: str) -> Any:
        key = int(explicit_hash_key or models.md5_hash(partition_key.encode()).hexdigest(), 10 if explicit_hash_key else 16)
        return next(each for each in self.shards.values() if each.is_open and each.starting_hash <= key <= each.ending_hash)

    def resharding(original: Callable[..., None]) -> Callable[..., None]:
        def keep(self: Any, *arguments: Any) -> None:
            held = {name: shard.records for name, shard in self.shards.items()}
            for shard in self.shards.values():
                shard.records = {}
            original(self, *arguments)
            for name, shard in self.shards.items():
                shard.records = held.get(name, {})

        return keep

    def get_records(self: Any) -> Any:
        given = json.loads(self.body)
        name, shard_id, _last = models.decompose_shard_iterator(given["ShardIterator"])
        following, records, behind = self.kinesis_backend.get_records(None, given["ShardIterator"], given.get("Limit"))
        shards = self.kinesis_backend.describe_stream(None, name).shards
        shard, last = shards[shard_id], int(models.decompose_shard_iterator(following)[2])
        answer = {"Records": [each.to_json() for each in records], "MillisBehindLatest": behind}
        if shard.is_open or any(number > last for number in shard.records):
            answer["NextShardIterator"] = following
        return responses.ActionResult(answer)

    models.Shard.put_record = put
    models.Stream.get_shard_for_key = shard_for_key
    models.Stream.split_shard = resharding(models.Stream.split_shard)
    models.Stream.merge_shards = resharding(models.Stream.merge_shards)
    responses.KinesisResponse.get_records = get_records


def patch_sqs() -> None:
    """Let requests wait for messages without a lock, and receive with it. Sending asks for one attribute: all take 30 ms."""
    models: Any = import_module("moto.sqs.models")
    original = models.SQSBackend.receive_message
    all_attributes = models.Queue.attributes.fget

    def attributes(self: Any) -> Any:
        if getattr(REQUEST, "sends", False):
            return {"ContentBasedDeduplication": str(self.content_based_deduplication).lower()}
        return all_attributes(self)

    def receive(self: Any, queue: str, count: int, wait: int, visibility: int, names: Any = None) -> Any:
        end = time.monotonic() + wait
        while True:
            with LOCK:
                found = original(self, queue, count, 0, visibility, names)
            if found or time.monotonic() >= end:
                return found
            time.sleep(_POLL)

    models.SQSBackend.receive_message = receive
    models.Queue.attributes = property(attributes)


class Faulty:
    """A WSGI application before moto's: it does what tests ask for, and fails requests."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if environ["PATH_INFO"].startswith("/-"):
            answer = _control(environ["PATH_INFO"][2:], json.loads(body or b"{}"))
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(answer).encode()]
        operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        if operation == "ReceiveMessage":
            return self._handle(operation, body, environ, start_response)
        REQUEST.sends = operation.startswith("SendMessage")
        with LOCK:
            return self._handle(operation, body, environ, start_response)

    def _handle(
        self, operation: str, body: bytes, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        entries = json.loads(body).get(_LISTS[operation], []) if operation in _LISTS else []
        if operation:
            REQUESTS.append((operation, len(entries)))
        fault = _fault(operation, entries)
        if fault is None:
            return self._call(body, environ, start_response)
        failed = _failed(fault, entries)
        if failed is None:
            start_response(f"{fault.get('status', 400)} Failed", [("Content-Type", "application/x-amz-json-1.1")])
            return [json.dumps({"__type": fault["code"], "message": fault.get("message", "asked for by a test")}).encode()]
        return self._partly(operation, fault, failed, body, environ, start_response)

    def _partly(
        self,
        operation: str,
        fault: dict[str, Any],
        failed: set[int],
        body: bytes,
        environ: dict[str, Any],
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        """Let moto take the entries that do not fail, and answer for all."""
        given = json.loads(body)
        entries = given[_LISTS[operation]]
        given[_LISTS[operation]] = [each for number, each in enumerate(entries) if number not in failed]
        answered: dict[str, list[Any]] = {"Records": [], "Successful": [], "Failed": []}
        if given[_LISTS[operation]]:
            answered |= json.loads(b"".join(self._call(json.dumps(given).encode(), environ, lambda *_given: None)))
        code, message = fault["code"], "asked for by a test"
        if operation == "PutRecords":
            taken = iter(answered["Records"])
            failure = {"ErrorCode": code, "ErrorMessage": message}
            found = [failure if number in failed else next(taken) for number in range(len(entries))]
            answer: dict[str, Any] = {"FailedRecordCount": len(failed), "Records": found}
        else:
            failures = [
                {"Id": entries[number]["Id"], "SenderFault": bool(fault.get("sender")), "Code": code, "Message": message}
                for number in sorted(failed)
            ]
            answer = {"Successful": answered.get("Successful", []), "Failed": [*answered.get("Failed", []), *failures]}
        start_response("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps(answer).encode()]

    def _call(self, body: bytes, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return list(self._application(environ, start_response))


def _fault(operation: str, entries: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the first fault for a request, and count it."""
    for fault in FAULTS:
        if fault["operation"] == operation and fault["times"] and (_failed(fault, entries) or _failed(fault, entries) is None):
            fault["times"] -= 1
            return fault
    return None


def _failed(fault: dict[str, Any], entries: list[dict[str, Any]]) -> set[int] | None:
    """Return the numbers of the entries that a fault is for; None if it is for whole requests.

    ``items`` has numbers, and ``having`` a text of the entries.
    """
    if "items" in fault:
        return {number for number in fault["items"] if number < len(entries)}
    if "having" in fault:
        return {number for number, each in enumerate(entries) if fault["having"] in json.dumps(each)}
    return None


def _control(what: str, given: dict[str, Any]) -> Any:
    """Do what a test asks for: fault, faults, clear, requests, trim, or expire."""
    from moto.kinesis.models import kinesis_backends

    if what == "fault":
        FAULTS.append({"times": 1, **given})
    elif what == "clear":
        FAULTS.clear()
        REQUESTS.clear()
    elif what == "faults":
        return FAULTS
    elif what == "requests":
        return REQUESTS
    else:
        with LOCK:
            stream = kinesis_backends["123456789012"]["eu-west-1"].streams[given["stream"]]
            if what == "trim":
                for shard in stream.shards.values():
                    shard.records = {number: each for number, each in shard.records.items() if number > int(given["to"])}
            elif what == "expire":
                del stream.shards[given["shard"]]
    return {}


def main() -> None:
    """Serve on the port that the arguments have."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    patch_kinesis()
    patch_sqs()
    run_simple("127.0.0.1", int(sys.argv[1]), Faulty(DomainDispatcherApplication(create_backend_app)), threaded=True)


if __name__ == "__main__":
    main()
