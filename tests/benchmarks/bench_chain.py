"""Measures records per second of processor time through converter, transforms and converter, beside Kafka Connect.

JsonConverter decodes each record; InsertField (a constant and the topic), ReplaceField (one field dropped, one renamed) and
Cast (two fields) transform it; JsonConverter encodes it. The code is that of tasks: in row form decoders, batched chain,
encoders; in columnar form the same for batches of columns. Kafka Connect's own converter and transforms (ConnectChain.java)
do the same work in the same rounds, in a JVM that is warm. ``chain`` measures the transforms alone.

Run: python tests/benchmarks/bench_chain.py [--records N] [--rounds N] [--profile]. Kafka Connect's side needs a JDK.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import json
import pstats
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from sluiceway.api import Converter, SinkRecord
from sluiceway.api.columns import Column, ColumnBatch
from sluiceway.columns.rows import sink_records
from sluiceway.config.worker import WorkerConfig
from sluiceway.java_runtime import find_java
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.runtime.task_converters import task_converters
from sluiceway.runtime.transforms.chain_config import transformation_stages
from sluiceway.runtime.transforms.column_chain import ColumnChain
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError, chain_of
from sluiceway.stack import maven
from sluiceway.stack.broker import KAFKA_VERSION

TOPIC = "orders"
BATCH = 500  # a sink task's batch size, Java's default of max.poll.records
LARGE_BATCH = 5000
KINDS = ("schemas", "schemaless")
WARM_UP_SECONDS = 8
_SOURCE = Path(__file__).parent / "ConnectChain.java"

_NO_KEYS = Column(None, None)

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
    """Return serialized record values."""
    payloads = (payload(number) for number in range(count))
    if kind == "schemaless":
        return [json.dumps(each, separators=(",", ":")).encode() for each in payloads]
    return [json.dumps({"schema": SCHEMA, "payload": each}, separators=(",", ":")).encode() for each in payloads]


Mover = Callable[[Sequence[bytes]], list[bytes | None]]
"""Moves a batch of values through decoder, chain and encoder."""


def config_of(kind: str) -> dict[str, str]:
    return {
        **CHAIN,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": str(kind == "schemas").lower(),
    }


def converter_of(kind: str) -> Converter:
    return task_converters(config_of(kind), WorkerConfig.of({})).value


def refuse(_record: SinkRecord, error: TransformationError) -> None:
    raise error


def transformed(chain: TransformationChain[SinkRecord], records: Sequence[SinkRecord]) -> Sequence[SinkRecord]:
    made = chain(records, refuse)
    if made.failure is not None:
        raise made.failure
    return made.records


def row_mover(kind: str) -> Mover:
    """Return the row form of a task's work."""
    converter = converter_of(kind)
    decode = converter.decoder(TOPIC)
    chain: TransformationChain[SinkRecord] = chain_of(config_of(kind), in_place=True)

    def move(values: Sequence[bytes]) -> list[bytes | None]:
        records = []
        for offset, data in enumerate(values):
            schema, value = decode(data)
            records.append(SinkRecord(TOPIC, 0, offset, value, schema))
        encoded = []
        known: object = move
        for record in transformed(chain, records):
            if record.value_schema is not known:
                known = record.value_schema
                encode = converter.encoder(TOPIC, record.value_schema)
            encoded.append(encode(record.value))
        return encoded

    return move


def column_batches(converter: Converter, values: Sequence[bytes]) -> Iterator[ColumnBatch]:
    """Yield the decoded values as columns."""
    decode = converter.column_decoder(TOPIC)
    assert decode is not None
    for start, end, column, _ in decode(pa.array(values, pa.binary())):
        assert column is not None, "not columnar"
        offsets = pa.array(range(start, end), pa.int64())
        yield ColumnBatch(topic=TOPIC, partition=0, key=_NO_KEYS, value=column, count=end - start, offsets=offsets)


def column_mover(kind: str) -> Mover:
    """Return the columnar form of a task's work."""
    converter = converter_of(kind)
    chain = ColumnChain(transformation_stages(config_of(kind)))

    def move(values: Sequence[bytes]) -> list[bytes | None]:
        encoded: list[bytes | None] = []
        for batch in column_batches(converter, values):
            for after in chain(batch):
                encode = converter.column_encoder(TOPIC, after.value.schema)
                assert encode is not None
                assert after.value.values is not None
                encoded += encode(after.value.values).to_pylist()
        return encoded

    return move


def expected(number: int) -> object:
    """Return the expected result for a record."""
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


def check(kind: str, results: Sequence[bytes | str | None]) -> None:
    """Raise SystemExit if a result is not that of the record with its number."""
    for number, data in enumerate(results):
        found = json.loads(data or b"null")
        found = found["payload"] if kind == "schemas" else found
        if found != expected(number):
            raise SystemExit(f"{kind}: {found} instead of {expected(number)}")


class Way(NamedTuple):
    """One measured way: ``run`` returns the processor seconds for all values."""

    name: str
    measure: str
    kind: str
    run: Callable[[], float]


def whole(move: Mover, values: Sequence[bytes], batch: int) -> Callable[[], float]:
    def run() -> float:
        started = time.process_time()
        for start in range(0, len(values), batch):
            move(values[start : start + batch])
        return time.process_time() - started

    return run


def rows_of_chain(values: Sequence[bytes]) -> Callable[[], float]:
    """Return the measurement of the transforms alone, in row form; it copies records, as Connect does."""
    converter = converter_of("schemas")
    chain: TransformationChain[SinkRecord] = chain_of(CHAIN)

    def run() -> float:
        seconds = 0.0
        for start in range(0, len(values), BATCH):
            (batch,) = column_batches(converter, values[start : start + BATCH])
            records = sink_records(batch)
            started = time.thread_time()  # the decoder has threads
            transformed(chain, records)
            seconds += time.thread_time() - started
        return seconds

    return run


def columns_of_chain(values: Sequence[bytes], size: int) -> Callable[[], float]:
    """Return the measurement of the transforms alone, in columnar form."""
    converter, chain = converter_of("schemas"), ColumnChain(transformation_stages(CHAIN))

    def run() -> float:
        seconds = 0.0
        for start in range(0, len(values), size):
            (batch,) = column_batches(converter, values[start : start + size])
            started = time.thread_time()
            chain(batch)
            seconds += time.thread_time() - started
        return seconds

    return run


class Peer:
    """A JVM with Kafka Connect's converter and transforms."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, measure: str, kind: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(measure, kind, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()

    def run(self, measure: str, kind: str) -> float:
        """Return the processor seconds for all values."""
        return float(self.ask(measure, kind))

    def warm_up(self, measure: str, kind: str) -> None:
        """Repeat a measure until the JVM has compiled it."""
        started = time.monotonic()
        while time.monotonic() < started + WARM_UP_SECONDS:
            self.run(measure, kind)


@contextlib.contextmanager
def kafka_connect(values: dict[str, list[bytes]]) -> Iterator[Peer]:
    """Start Kafka Connect's side with these values by kind."""
    java = str(find_java().executable)
    parts = ("api", "json", "transforms")
    jars = maven.resolve([f"org.apache.kafka:connect-{part}:{KAFKA_VERSION}" for part in parts], title="Kafka Connect")
    with tempfile.TemporaryDirectory(prefix="sluiceway-chain-") as name:
        folder = Path(name)
        compiler = [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-cp", maven.classpath(jars)]
        subprocess.run([*compiler, "-d", name, str(_SOURCE)], check=True)
        (folder / "chain.properties").write_text("".join(f"{key}={value}\n" for key, value in CHAIN.items()))
        for kind, lines in values.items():
            (folder / kind).write_bytes(b"\n".join(lines))
        command = [java, "-Xms1g", "-Xmx1g", "-cp", maven.classpath([folder, *jars]), "ConnectChain", name, TOPIC]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            yield Peer(process)
        finally:
            process.kill()
            process.communicate()


def ways(values: dict[str, list[bytes]]) -> list[Way]:
    """Return our side's ways, checked."""
    movers = {("rows", kind): row_mover(kind) for kind in KINDS} | {("columns", "schemas"): column_mover("schemas")}
    for (_, kind), move in movers.items():
        check(kind, move(messages(kind, 20)))
    columns, schemas = movers["columns", "schemas"], values["schemas"]
    return [
        *(Way("rows", "whole", kind, whole(movers["rows", kind], values[kind], BATCH)) for kind in KINDS),
        *(Way(f"columns of {size}", "whole", "schemas", whole(columns, schemas, size)) for size in (BATCH, LARGE_BATCH)),
        Way("rows", "chain", "schemas", rows_of_chain(schemas)),
        *(Way(f"columns of {size}", "chain", "schemas", columns_of_chain(schemas, size)) for size in (BATCH, LARGE_BATCH)),
    ]


def compare(values: dict[str, list[bytes]], rounds: int) -> None:
    """Measure all ways in interleaved rounds and print medians and ratios."""
    count = len(values["schemas"])
    ours = ways(values)
    theirs = list(dict.fromkeys((way.measure, way.kind) for way in ours))
    seconds: dict[object, list[float]] = {each: [] for each in (*ours, *theirs)}
    with kafka_connect(values) as peer:
        for kind in KINDS:
            check(kind, [peer.ask("check", kind)])
        for each in theirs:
            peer.warm_up(*each)
        for _ in range(rounds):
            for way in ours:
                seconds[way].append(way.run())
            for each in theirs:
                seconds[each].append(peer.run(*each))
    for way in ours:
        mine, other = (count / statistics.median(seconds[each]) for each in (way, (way.measure, way.kind)))
        label = f"{way.measure} {way.kind:<10} {way.name}"
        print(f"{label:<34} {mine:>10,.0f} records/s of one core   Kafka Connect {other:>9,.0f}   ratio {mine / other:.2f}")


def profile(kind: str, values: Sequence[bytes], move: Mover) -> None:
    with cProfile.Profile() as profiler:
        whole(move, values, BATCH)()
    print(kind)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(14)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="say where the time goes instead")
    arguments = parser.parse_args()
    raise_gc_threshold()
    values = {kind: messages(kind, arguments.records) for kind in KINDS}
    if arguments.profile:
        for kind in KINDS:
            profile(f"rows, {kind}", values[kind], row_mover(kind))
        profile("columns, schemas", values["schemas"], column_mover("schemas"))
    else:
        compare(values, arguments.rounds)


if __name__ == "__main__":
    main()
