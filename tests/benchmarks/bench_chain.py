"""Records per second through converter, chain and converter, on one core.

Each record is decoded by JsonConverter, goes through InsertField (a constant and the topic), ReplaceField (one field left
out, one renamed) and Cast (two fields), and is encoded by JsonConverter again, with the code that tasks use: the decoders,
the chain on batches, the encoders. Real Kafka Connect does about 55,000 a second with schemas and 145,000 without on one
core of the same kind, which is printed beside.

Run: python tests/benchmarks/bench_chain.py [--records N] [--rounds N] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Callable, Sequence

from sluiceway.api import SinkRecord
from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.runtime.task_converters import task_converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError, chain_of

TOPIC = "orders"
BATCH = 500  # a sink task's, as Java's max.poll.records
PEER = {"schemas": 55_000, "schemaless": 145_000}

_TRANSFORMS = "org.apache.kafka.connect.transforms."
CHAIN = {
    "transforms": "insert,replace,cast",
    "transforms.insert.type": _TRANSFORMS + "InsertField$Value",
    "transforms.insert.static.field": "origin",
    "transforms.insert.static.value": "bench",
    "transforms.insert.topic.field": "topic",
    "transforms.replace.type": _TRANSFORMS + "ReplaceField$Value",
    "transforms.replace.exclude": "secret",
    "transforms.replace.renames": "name:customer",
    "transforms.cast.type": _TRANSFORMS + "Cast$Value",
    "transforms.cast.spec": "amount:float64,count:string",
}
SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "name", "type": "string", "optional": True},
        {"field": "amount", "type": "int32", "optional": False},
        {"field": "count", "type": "int32", "optional": False},
        {"field": "active", "type": "boolean", "optional": False},
        {"field": "secret", "type": "string", "optional": True},
    ],
}


def payload(number: int) -> dict[str, object]:
    return {
        "id": number,
        "name": f"customer-{number % 997}",
        "amount": number % 10_000,
        "count": number % 7,
        "active": number % 2 == 0,
        "secret": "s3cr3t",
    }


def messages(kind: str, count: int) -> list[bytes]:
    """Return values as they are in Kafka."""
    payloads = (payload(number) for number in range(count))
    if kind == "schemaless":
        return [json.dumps(each, separators=(",", ":")).encode() for each in payloads]
    return [json.dumps({"schema": SCHEMA, "payload": each}, separators=(",", ":")).encode() for each in payloads]


def mover(kind: str) -> Callable[[Sequence[bytes]], list[bytes | None]]:
    """Return what takes a batch of values to a batch of values, as tasks do it."""
    config = {
        **CHAIN,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": str(kind == "schemas").lower(),
    }
    converter = task_converters(config, WorkerConfig.of({})).value
    decode = converter.decoder(TOPIC)
    chain: TransformationChain[SinkRecord] = chain_of(config, in_place=True)

    def refuse(_record: SinkRecord, error: TransformationError) -> None:
        raise error

    def move(values: Sequence[bytes]) -> list[bytes | None]:
        records = []
        for offset, data in enumerate(values):
            schema, value = decode(data)
            records.append(SinkRecord(TOPIC, 0, offset, value, schema))
        made = chain(records, refuse)
        if made.failure is not None:
            raise made.failure
        encoded = []
        known: object = move
        for record in made.records:
            if record.value_schema is not known:
                known = record.value_schema
                encode = converter.encoder(TOPIC, record.value_schema)
            encoded.append(encode(record.value))
        return encoded

    return move


def expected(number: int) -> object:
    """Return what becomes of a record, by hand."""
    given = payload(number)
    return {
        "id": number,
        "customer": given["name"],
        "amount": float(number % 10_000),
        "count": str(number % 7),
        "active": given["active"],
        "topic": TOPIC,
        "origin": "bench",
    }


def check(kind: str) -> None:
    """Raise SystemExit if what comes out is wrong: a fast wrong answer is none."""
    for number, data in enumerate(mover(kind)(messages(kind, 20))):
        found = json.loads(data or b"null")
        found = found["payload"] if kind == "schemas" else found
        if found != expected(number):
            raise SystemExit(f"{kind}: {found} instead of {expected(number)}")


def rate(kind: str, count: int) -> float:
    """Return records per second of processor time."""
    values = messages(kind, count)
    move = mover(kind)
    move(values[:BATCH])
    started = time.process_time()
    for start in range(0, count, BATCH):
        move(values[start : start + BATCH])
    return count / (time.process_time() - started)


def profile(kind: str, count: int) -> None:
    values, move = messages(kind, count), mover(kind)
    with cProfile.Profile() as profiler:
        for start in range(0, count, BATCH):
            move(values[start : start + BATCH])
    pstats.Stats(profiler).sort_stats("tottime").print_stats(14)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="say where the time goes instead")
    arguments = parser.parse_args()
    raise_gc_threshold()
    for kind, peer in PEER.items():
        check(kind)
        if arguments.profile:
            profile(kind, arguments.records // 4)
            continue
        best = max(rate(kind, arguments.records) for _ in range(arguments.rounds))
        print(f"{kind:<11} {best:>9,.0f} records/s on one core   Kafka Connect about {peer:>7,}   ratio {best / peer:.2f}")


if __name__ == "__main__":
    main()
