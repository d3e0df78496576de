"""Helpers for tests of transformation chains: short configs, comparable records and test transforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.api import Predicate, SinkRecord, SourceRecord, Transform
from sluiceway.api.transform import ConnectRecord, R
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError, TransformedBatch, chain_of

JAVA = "org.apache.kafka.connect.transforms."


def chain_config(*stages: Mapping[str, str], **predicates: Mapping[str, str]) -> dict[str, str]:
    """Return a config of transforms t0, t1, ... and of predicates by alias; types without a dot are Connect's."""
    config = {"transforms": ",".join(f"t{index}" for index in range(len(stages))), "predicates": ",".join(predicates)}
    parts = {
        **{f"transforms.t{index}": stage for index, stage in enumerate(stages)},
        **{f"predicates.{alias}": predicate for alias, predicate in predicates.items()},
    }
    for prefix, options in parts.items():
        package = JAVA + ("predicates." if prefix.startswith("predicates") else "")
        for name, value in options.items():
            config[f"{prefix}.{name}"] = package + value if name == "type" and "." not in value else value
    return config


def chain(*stages: Mapping[str, str], in_place: bool = False, **predicates: Mapping[str, str]) -> TransformationChain[Any]:
    return chain_of(chain_config(*stages, **predicates), in_place=in_place)


def sink(value: Any, schema: Any = None, **more: Any) -> SinkRecord:
    return SinkRecord("orders", 3, 42, value, schema, **more)


def run(made: TransformationChain[Any], *records: Any) -> tuple[TransformedBatch[Any], list[tuple[Any, TransformationError]]]:
    """Return the transformed batch, and the records that failed and were skipped, each with its error."""
    failed: list[tuple[Any, TransformationError]] = []
    return made(records, lambda record, error: failed.append((record, error))), failed


def values(records: Sequence[ConnectRecord]) -> list[Any]:
    return [record.value for record in records]


class Repeat(Transform):
    """Returns as many records for each as the first digit of its value."""

    def apply(self, record: R) -> R | Sequence[R] | None:
        return [record.new_record(value=f"{record.value}.{number}") for number in range(int(str(record.value)[0]))]


class Broken(Transform):
    """Fails in ``configure`` if so configured, and in every other call."""

    def configure(self, config: Mapping[str, str]) -> None:
        if config.get("fail") == "configure":
            raise ValueError("no such thing")

    def apply(self, record: R) -> R | Sequence[R] | None:
        raise RuntimeError(f"cannot do {record.value}")

    def close(self) -> None:
        raise RuntimeError("cannot close")


class Closing(Transform, Predicate):
    """Counts calls of ``close``."""

    closed = 0

    def apply(self, record: R) -> R | Sequence[R] | None:
        return record

    def test(self, record: ConnectRecord) -> bool:
        return True

    def close(self) -> None:
        Closing.closed += 1


def shape(record: SourceRecord | SinkRecord) -> tuple[Any, ...]:
    """Return a record's fields in comparable form (NaN equals itself, -0.0 differs from 0.0)."""
    return tuple(
        value
        if name.endswith("schema")
        else (repr(value), type(value))
        if name != "headers"
        else [(key, repr(item), schema) for key, item, schema in value]
        for name in record.__slots__
        for value in [getattr(record, name)]
    )
