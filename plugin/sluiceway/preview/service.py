"""Answers requests for previews: validates the config, finds the stored offsets, and runs the preview."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION, NAME
from sluiceway.config.source_keys import OFFSETS_TOPIC
from sluiceway.discovery import connector_class, is_sink, java_name
from sluiceway.errors import NotFoundError
from sluiceway.herder import Herder
from sluiceway.herder.offset_edits import OffsetEdit
from sluiceway.herder.references import References
from sluiceway.kafka.admin import partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.preview.answer import Answer
from sluiceway.preview.isolation import require_landlock, without_servers_keys
from sluiceway.preview.launcher import run_preview
from sluiceway.preview.request import Limits, PreviewRequest

_UNNAMED = "preview"

Run = Callable[[PreviewRequest, Answer], None]


def preview(
    herder: Herder, config: Mapping[str, str | None], limits: Limits, *, from_beginning: bool = False, run: Run = run_preview
) -> dict[str, Any]:
    """Return a preview of a config as JSON.

    A config with errors is not run; the result of its validation is in ``validation``. If this process is not to resolve
    references (``Herder.offline``), the preview's process does so, and tries what needs a connection. The connector starts at
    the stored offsets of the connector with its name, if there is one. Raises BadRequestError and ConfigError as validation
    does, and ConflictError if too many previews run.
    """
    named = config if config.get(NAME) else {**config, NAME: _UNNAMED}
    found = herder.validate(named)
    if found.error_count:
        unknown = {"name": named[NAME], "class": named.get(CONNECTOR_CLASS), "type": None, "start": None}
        return {**unknown, "validation": found.to_json(), **Answer().to_json()}
    known = {key: value for key, value in named.items() if value is not None}
    cls = connector_class(known[CONNECTOR_CLASS], known.get(CONNECTOR_VERSION))
    offsets = None if from_beginning else _stored_offsets(herder, known[NAME], sink=is_sink(cls))
    answer, request = _isolated(known, herder, offsets, limits) if herder.offline else _plain(known, herder, offsets, limits)
    run(request, answer)
    return {
        "name": known[NAME],
        "class": java_name(cls),
        "type": "sink" if is_sink(cls) else "source",
        "start": "beginning" if offsets is None else "stored offsets",
        "validation": answer.validation,
        **answer.to_json(),
    }


def _plain(
    config: Mapping[str, str], herder: Herder, offsets: Sequence[OffsetEdit] | None, limits: Limits
) -> tuple[Answer, PreviewRequest]:
    """Return a request for a process with the rights and references of this one."""
    references = References.of(config, herder.worker)
    answer = Answer(references.hidden)
    for text in references.warnings:
        answer.add({"event": "warning", "text": text})
    return answer, PreviewRequest(references.known, herder.worker, offsets, limits)


def _isolated(
    config: Mapping[str, str], herder: Herder, offsets: Sequence[OffsetEdit] | None, limits: Limits
) -> tuple[Answer, PreviewRequest]:
    """Return a request for a process that reaches nothing of this one. Raises ConnectError if the system has no means for it."""
    require_landlock("Previews", "Run `sluiceway preview` with a REST API outside of Airflow instead.")
    worker = without_servers_keys(herder.worker)
    return Answer(shows_log=False), PreviewRequest(config, worker, offsets, limits, isolated=True)


def _stored_offsets(herder: Herder, name: str, *, sink: bool) -> Sequence[OffsetEdit] | None:
    """Return the offsets of the connector with this name and type; None if there is no such connector, or it has none."""
    try:
        info = herder.info(name)
    except NotFoundError:
        return None
    if info.type != ("sink" if sink else "source"):
        return None
    topic = None if sink else info.config.get(OFFSETS_TOPIC)
    if topic and partition_count(admin_client(herder.worker), topic) is None:  # reading the offsets would create it
        return None
    return herder.offsets(name) or None
