"""Decodes records of a topic for ``sluiceway read``: by a connector's converters, or by what the bytes look like."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sluiceway.errors import ConnectError, NotFoundError

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.kafka.clients import ConsumedMessage
    from sluiceway.runtime.task_converters import Converters

_MAGIC, _HEAD_BYTES = 0, 5  # of Schema Registry's messages: the magic byte and the schema's id


class RecordReader:
    """Makes documents of records. ``how`` says what decodes them. Use it as a context manager.

    With ``mask``, secrets are hidden as in configs. ``passwords`` are the keys of connectors' configs with type password.
    """

    def __init__(self, how: str, converters: Converters | None, *, mask: bool, passwords: Container[str] = ()) -> None:
        self.how = how
        self._converters = converters
        self._mask = mask
        self._passwords = passwords
        self._resources = ExitStack()
        if converters is not None:
            self._resources.callback(converters.close)

    @classmethod
    def of(
        cls,
        worker: WorkerConfig,
        configs: Mapping[str, Mapping[str, str]],
        topic: str,
        connector: str | None,
        *,
        mask: bool,
        writers: Callable[[], Iterable[str]] = tuple,
    ) -> RecordReader:
        """Return a reader with the converters of a connector, by default those of a sink that reads the topic, else of a writer.

        ``configs`` are those of all connectors. ``writers`` returns the connectors that have used the topic, if no sink reads it.
        Raises NotFoundError for an unknown connector.
        """
        from sluiceway.config.variables import resolver
        from sluiceway.runtime.task_converters import task_converters

        sinks = (each for each in sorted(configs) if topic in _topics(configs[each], topic))
        name = connector or next(sinks, None) or next((each for each in writers() if each in configs), None)
        if name is None:
            passwords = _passwords(worker, configs) if mask and topic == worker.config_topic else ()
            return cls("decoded by what their bytes look like", None, mask=mask, passwords=passwords)
        if name not in configs:
            raise NotFoundError(f"Connector {name} not found.")
        providers = resolver(worker)
        try:
            config = providers.resolve({key: value for key, value in configs[name].items() if ".converter" in key})
        finally:
            providers.close()
        return cls(f"decoded by the converters of connector {name}", task_converters(config, worker, preview=True), mask=mask)

    def document(self, message: ConsumedMessage) -> dict[str, Any]:
        """Return a record as JSON; ``error`` says why its converters cannot decode it."""
        kind, timestamp = message.timestamp()
        decoded = self._decoded(message)
        return {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": datetime.fromtimestamp(timestamp / 1000, timezone.utc).isoformat() if kind else None,
            "key": self._masked(decoded.key),
            "value": self._masked(decoded.value),
            "headers": [{"key": key, "value": guessed(data)} for key, data in message.headers() or ()],
            **({"error": decoded.error} if decoded.error else {}),
        }

    def _decoded(self, message: ConsumedMessage) -> _Decoded:
        from sluiceway.preview.images import Clip

        key, value = message.key(), message.value()
        if self._converters is None:
            return _Decoded(guessed(key), guessed(value))
        clip, topic = Clip(), message.topic()
        found = _Decoded(guessed(key), guessed(value))
        try:
            found.key = clip.data(self._converters.key.to_connect_data(topic, key)[1])
            found.value = clip.data(self._converters.value.to_connect_data(topic, value)[1])
        except ConnectError as error:  # any other error is the converter's fault, not the record's
            found.error = str(error)
        return found

    def _masked(self, data: Any, name: str = "") -> Any:
        """Replace the values of fields with names such as password, and passwords in other texts."""
        from sluiceway.config.masking import shown

        if isinstance(data, dict):
            return {key: self._masked(value, key) for key, value in data.items()}
        if isinstance(data, list):
            return [self._masked(each, name) for each in data]
        if not self._mask or data is None:
            return data
        text = data if isinstance(data, str) else str(data)
        hidden = shown(name, text, self._passwords)
        return data if hidden == text else hidden

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()


@dataclass
class _Decoded:
    key: Any
    value: Any
    error: str | None = None


def guessed(data: bytes | None) -> Any:
    """Return bytes as JSON (without the schema of JsonConverter), text, or an object with ``base64``. No I/O."""
    from sluiceway.preview.images import Clip

    if data is None:
        return None
    image = Clip().bytes(data) or {}
    if "text" not in image:
        schema = int.from_bytes(data[1:_HEAD_BYTES], "big") if len(data) >= _HEAD_BYTES and data[0] == _MAGIC else None
        return image if schema is None else {"schema_registry_id": schema, **image}
    try:
        document = json.loads(data)
    except ValueError:
        return image["text"]
    return document["payload"] if isinstance(document, dict) and document.keys() == {"schema", "payload"} else document


def _passwords(worker: WorkerConfig, configs: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Return the keys of type password of the connectors whose configs and tasks a config topic has."""
    from sluiceway.herder.passwords import password_keys
    from sluiceway.herder.plugin_path import use_plugin_path

    use_plugin_path(worker.raw)
    return frozenset().union(*map(password_keys, configs.values()))


def _topics(config: Mapping[str, str], topic: str) -> tuple[str, ...]:
    """Return the topics that a sink reads: with ``topics.regex``, this one if it matches."""
    from sluiceway.config.connector import TOPICS_REGEX, sink_topics
    from sluiceway.java.regex import RegexError, compile_java

    matches: Callable[[str], bool] = lambda _text: False  # noqa: E731
    if pattern := config.get(TOPICS_REGEX):
        try:
            matches = compile_java(pattern).matches
        except RegexError:
            return ()
    return sink_topics(config, (topic,) if matches(topic) else ())
