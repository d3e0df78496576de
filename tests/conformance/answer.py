"""Answers conformance vectors with Sluiceway's code: JSON lines in, JSON lines out.

Run: python tests/conformance/answer.py < vectors.jsonl > answers.jsonl

This file and ``vector_data`` only read vectors and write results; the product's code computes them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import vector_data as form
from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.config.connector import CONNECTOR
from sluiceway.config.worker import WorkerConfig
from sluiceway.data import Header
from sluiceway.errors import java_name
from sluiceway.herder import validation
from sluiceway.runtime.task_converters import task_converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError, chain_of

Json = Any

# The worker config that connector configs are validated with.
_WORKER = WorkerConfig.of({"bootstrap.servers": "localhost:9092"})
_CONNECTOR = "org.apache.kafka.connect.file.FileStreamSinkConnector"


def answer(vector: Json) -> Json:
    """Return the result for one vector, or an error if the vector is invalid."""
    try:
        given = _KINDS[vector["kind"]](vector)
    except Exception as error:  # noqa: BLE001 (one bad vector must not end the others)
        given = {"error": {"class": "java.lang.IllegalStateException", "message": f"not answered: {error!r}"}}
    return {"id": vector["id"], **given}


def _error(stage: str, error: BaseException, index: int | None = None) -> Json:
    described = {**_described(error), "stage": stage, **({} if index is None else {"index": index})}
    return {"error": described}


def _described(error: BaseException) -> Json:
    node = {"class": _java_class(error), "message": str(error) if error.args else None}
    if error.__cause__ is not None:
        node["cause"] = _described(error.__cause__)
    return node


def _java_class(error: BaseException) -> str:
    """Return the Java class of an error; its message decides where one Python class represents several."""
    name, text = java_name(error), str(error)
    if isinstance(error, TypeError) and "cannot be cast to class" in text:
        return "java.lang.ClassCastException"
    if isinstance(error, ValueError) and text.startswith("For input string:"):
        return "java.lang.NumberFormatException"
    if isinstance(error, IndexError) and "out of bounds for length" in text:
        return "java.lang.ArrayIndexOutOfBoundsException"
    return name


# --- transforms --------------------------------------------------------------------------------------------------------


def _transform(vector: Json) -> Json:
    config = {"name": "conformance", "connector.class": _CONNECTOR, **vector["config"]}
    try:
        CONNECTOR.parse(config)
        chain: TransformationChain[Any] = chain_of(config)
    except Exception as error:  # noqa: BLE001
        return _error("configure", error)
    record = read_record(vector["record"])
    try:
        records = _through(chain, record)
    except TransformationError as error:
        return _error("apply", error.__cause__ or error, error.stage)
    return {"records": [write_record(each) for each in records]}


def _through(chain: TransformationChain[Any], record: Any) -> Any:
    """Transform a record as part of a batch, as tasks do."""

    def refuse(_record: Any, error: TransformationError) -> None:
        raise error

    transformed = chain([record], refuse)
    if transformed.failure is not None:
        raise transformed.failure
    return transformed.records


def read_record(node: Json) -> SourceRecord | SinkRecord:
    """Return the record of a vector."""
    key_schema, key = form.read_data(node["key"])
    value_schema, value = form.read_data(node["value"])
    headers = tuple(_read_header(header) for header in node["headers"])
    if node["side"] == "source":
        return SourceRecord(
            {"sp": 1},
            {"so": 2},
            node["topic"],
            value,
            value_schema,
            key,
            key_schema,
            kafka_partition=node["partition"],
            timestamp=node["timestamp"],
            headers=headers,
        )
    return SinkRecord(
        node["topic"],
        node["partition"],
        node["offset"],
        value,
        value_schema,
        key,
        key_schema,
        timestamp=node["timestamp"],
        headers=headers,
    )


def _read_header(node: Json) -> Header:
    schema, value = form.read_data(node, "value")
    return Header(node["key"], value, schema)


def write_record(record: SourceRecord | SinkRecord) -> Json:
    """Return a record in the vectors' form."""
    sink = isinstance(record, SinkRecord)
    return {
        "side": "sink" if sink else "source",
        "topic": record.topic,
        "partition": record.kafka_partition,
        "timestamp": record.timestamp,
        **({"offset": record.kafka_offset} if isinstance(record, SinkRecord) else {}),
        "key": form.write_data(record.key_schema, record.key),
        "value": form.write_data(record.value_schema, record.value),
        "headers": [{"key": key, **form.write_data(schema, value, "value")} for key, value, schema in record.headers],
    }


# --- converters --------------------------------------------------------------------------------------------------------


def _converter(vector: Json) -> Json:
    operation, topic = vector["op"], vector["topic"]
    try:
        converter = configured(vector, header=operation.endswith("_header"))
    except Exception as error:  # noqa: BLE001
        return _error("configure", error)
    try:
        return _converted(converter, vector, operation, topic)
    except Exception as error:  # noqa: BLE001
        return _error(operation, error)


def configured(vector: Json, *, header: bool) -> Any:
    """Return the converter as a task with this config for keys, values or headers has it."""
    part = "header" if header else "key" if vector["is_key"] else "value"
    key = f"{part}.converter"
    config = {key: vector["class"], **{f"{key}.{option}": value for option, value in vector["config"].items()}}
    return getattr(task_converters(config, _WORKER), part)


def _converted(converter: Any, vector: Json, operation: str, topic: str) -> Json:
    if operation.startswith("from"):
        schema, value = form.read_data(vector["data"])
        if operation == "from_header":
            data = converter.from_connect_header(topic, "h", schema, value)
        else:
            data = converter.encoder(topic, schema)(value)
        return _write_bytes(data)
    data = vector["text"].encode() if "text" in vector else vector["bytes"] and base64.b64decode(vector["bytes"])
    if vector.get("bytes") == "":
        data = b""
    result = converter.to_connect_header(topic, "h", data) if operation == "to_header" else converter.decoder(topic)(data)
    return {"data": None if result is None else form.write_data(*result)}


def _write_bytes(data: bytes | None) -> Json:
    if data is None:
        return {"bytes": None}
    answer: dict[str, Json] = {"bytes": base64.b64encode(data).decode()}
    with contextlib.suppress(UnicodeDecodeError):
        answer["text"] = bytes(data).decode()
    return answer


# --- validation --------------------------------------------------------------------------------------------------------


def _configdef(vector: Json) -> Json:
    operation = vector["op"]
    try:
        if operation == "plugin_config":
            return {"config_keys": [key.to_json() for key in validation.plugin_config(vector["plugin"])]}
        entity = validation.validate_config(vector["config"], _WORKER).to_json()
    except Exception as error:  # noqa: BLE001
        return _error(operation, error)
    if vector.get("form") == "values":
        entity["configs"] = [config["value"] for config in entity["configs"]]
    return {"result": entity}


_KINDS: dict[str, Callable[[Json], Json]] = {"transform": _transform, "converter": _converter, "configdef": _configdef}


def answers(text: str) -> Iterator[str]:
    """Yield an answer line for each line of vectors. Lines end with ``\\n`` only."""
    for line in text.split("\n"):
        if line:
            yield json.dumps(answer(json.loads(line)))


if __name__ == "__main__":
    import logging

    logging.disable(logging.CRITICAL)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    for line in answers(sys.stdin.buffer.read().decode("utf-8")):
        sys.stdout.write(line + "\n")
