"""Reads a sink's topics for a preview, and shows the records that its tasks would be given. Runs in the preview's process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from sluiceway.api import SinkConnector, SinkRecord
from sluiceway.config.connector import JAVA_OPTS, NAME, overrides
from sluiceway.errors import java_text_of
from sluiceway.herder.offset_edits import sink_offsets
from sluiceway.java_plugins.hosts import task_host
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.kafka.topic_sample import TopicSample
from sluiceway.preview.errors import ErrorPolicy, Failures
from sluiceway.preview.images import Clip, message_image, record_image
from sluiceway.preview.request import PreviewRequest, Tell
from sluiceway.preview.steps import pass_through
from sluiceway.runtime.sink.consumer_settings import sink_consumer
from sluiceway.runtime.sink.sink_records import SinkRecordConverter
from sluiceway.runtime.sink.subscription import Subscription
from sluiceway.runtime.task import TaskSpec
from sluiceway.runtime.task_converters import task_converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, chain_of
from sluiceway.runtime.worker_task import log_errors
from sluiceway.storage.model import TaskId


class MessageViewer:
    """Tells a sink's records: as in Kafka, as converted, after each transform, and as ``put`` would be given them."""

    def __init__(
        self, cls: type[SinkConnector], config: Mapping[str, str], request: PreviewRequest, tell: Tell, resources: ExitStack
    ) -> None:
        """Create the converters and the chain, and register them for closing. Raises ConfigError."""
        self._policy = ErrorPolicy(config)
        converters = task_converters(config, request.worker, preview=True)
        resources.callback(log_errors, "Closing the converters", converters.close)
        self._chain: TransformationChain[SinkRecord] = chain_of(config)
        resources.callback(self._chain.close)
        self._failures = Failures()
        needs = cls.task_class.needs_schemas(config)
        self._converter = SinkRecordConverter(converters, self._failures, lambda _topic: None, needs_schemas=needs)
        self._tell = tell
        self.put: list[SinkRecord] = []
        self.told = 0

    def view(self, message: ConsumedMessage) -> None:
        """Tell one record."""
        self.told += 1
        event: dict[str, Any] = {"event": "record", "number": self.told, "message": message_image(message)}
        event |= {"before": None, "steps": [], "put": [], "error": None}
        [*records] = self._converter.convert([message]).records
        failure = self._failures.take()
        if failure is not None:
            error, context = failure
            event["error"] = self._policy.image(error, context.stage.name, context.executing_class)
        for record in records:
            event["before"] = record_image(record)
            passage = pass_through(self._chain.stages, record, self._policy)
            event |= {"steps": passage.steps, "error": passage.error}
            event["put"] = [record_image(last) for last in passage.records]
            self.put += passage.records
        self._tell(event)


def preview_sink(cls: type[SinkConnector], config: Mapping[str, str], request: PreviewRequest, tell: Tell) -> str:
    """Tell up to the wanted number of records, and what the connector would write for them. Return why there are not more."""
    deadline = time.monotonic() + request.limits.seconds * 0.8
    worker, name = request.worker, config.get(NAME, "")
    with ExitStack() as resources:
        resources.enter_context(task_host(name, config.get(JAVA_OPTS, "")))
        viewer = MessageViewer(cls, config, request, tell, resources)
        tell({"event": "phase", "phase": "reading the topics"})
        settings, _ = sink_consumer(TaskSpec(TaskId(name, 0), config, worker, "", 0, sink=True))
        sample = TopicSample(worker, settings, overrides(config, "admin"))
        topics = Subscription(config).find_topics(sample)
        starts = {each: offset for each, offset in sink_offsets(request.offsets or ()).items() if offset is not None}
        for message in sample.read(topics, starts, request.limits.records, deadline):
            viewer.view(message)
        if viewer.put:
            _tell_target(cls, config, viewer.put, tell)
    if viewer.told >= request.limits.records:
        return ""
    missing = f" These topics do not exist: {', '.join(sample.missing)}." if sample.missing else ""
    if time.monotonic() >= deadline:
        return f"No more records could be read within {request.limits.seconds:g} s.{missing}"
    return f"The topics have no{' more' if viewer.told else ''} records from there on.{missing}"


def _tell_target(cls: type[SinkConnector], config: Mapping[str, str], records: list[SinkRecord], tell: Tell) -> None:
    """Tell what the connector would write, or its error."""
    tell({"event": "phase", "phase": f"{cls.__name__}.preview()"})
    try:
        texts = cls.preview(config, records)
    except Exception as error:  # noqa: BLE001 (a connector may raise anything; the records are shown nevertheless)
        tell({"event": "target", "target": None, "error": java_text_of(error)})
        return
    if texts is not None:
        clip = Clip()
        shown = [clip.text(text) for text in texts if not clip.full]
        tell({"event": "target", "target": shown, "clipped": clip.clipped or len(shown) < len(texts)})
