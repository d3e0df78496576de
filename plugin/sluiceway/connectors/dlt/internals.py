"""The names of dlt that its documentation does not promise. Runs in the reader's process.

dlt's documented way to read a source is a pipeline, which writes packages of files and hands over nothing before the last row
is extracted. These names are what a pipeline itself extracts with. setup.cfg pins dlt's minor version because of them, and
tests/unit/connectors/dlt/test_internals.py has a test for each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dlt.common.configuration import inject_section
from dlt.common.configuration.container import Container
from dlt.common.configuration.providers import CustomLoaderDocProvider
from dlt.common.configuration.specs.config_providers_context import ConfigProvidersContainer
from dlt.common.configuration.specs.config_section_context import ConfigSectionContext
from dlt.common.configuration.specs.pluggable_run_context import PluggableRunContext
from dlt.common.json import DECODERS, PUA_START, json
from dlt.common.pipeline import StateInjectableContext
from dlt.extract import DltResource, DltSource
from dlt.extract.extractors import ImportFileMeta, MaterializedEmptyList
from dlt.extract.hints import HintsMeta
from dlt.extract.items import TableNameMeta
from dlt.extract.pipe_iterator import PipeIterator
from dlt.extract.source import SourceInjectableContext, SourceSchemaInjectableContext
from dlt.extract.state import reset_resource_state

_CODES = {"decimal": 0, "timestamp": 1, "date": 2, "uuid": 3, "hex": 4, "base64": 5, "wei": 6, "time": 7}


class Page(NamedTuple):
    """A page of a resource. ``ahead`` is whether others of its pages are being made, which the state may cover already."""

    resource: DltResource
    items: Any
    meta: Any
    ahead: bool


class _Values(CustomLoaderDocProvider):
    """Has no files, of which dlt's errors tell."""

    @property
    def locations(self) -> list[str]:
        return []


def use_values(values: Mapping[str, Any]) -> None:
    """Let dlt look up configuration and secrets in these values only: not in the environment, in files, or in Airflow."""
    provider = _Values("the connector's config", lambda: dict(values))
    Container()[PluggableRunContext].providers = ConfigProvidersContainer([provider])


@contextlib.contextmanager
def without_state() -> Iterator[None]:
    """Let the functions of sources, which only make resources, ask for a state. It is empty, and what they change is dropped."""
    with Container().injectable_context(StateInjectableContext(state={})):
        yield


def read_by_transformers(source: DltSource) -> set[str]:
    """Return the names of the resources that a transformer reads."""
    return {each._pipe.parent.name for each in source.resources.values() if each._pipe.parent is not None}


def pages(source: DltSource, state: dict[str, Any]) -> Iterator[Page]:
    """Yield what the selected resources yield, as a pipeline would extract it. ``state`` is updated before each page is yielded.

    It is the state of a pipeline: {"sources": {source: {"resources": {resource: {...}}}}}.
    """
    section = ConfigSectionContext(sections=("sources", source.section, source.name), source_state_key=source.name)
    container = Container()
    with contextlib.ExitStack() as contexts:
        contexts.enter_context(container.injectable_context(StateInjectableContext(state=state)))  # type: ignore[arg-type]
        contexts.enter_context(container.injectable_context(SourceSchemaInjectableContext(source.schema)))
        contexts.enter_context(container.injectable_context(SourceInjectableContext(source)))
        contexts.enter_context(inject_section(section))
        for resource in source.resources.extracted:
            if resource.write_disposition == "replace":
                reset_resource_state(resource.name)
        iterator: Any = PipeIterator.from_pipes(source.resources.selected_pipes)
        contexts.enter_context(iterator)
        futures = iterator._futures_pool.futures
        for item in iterator:
            ahead = any(future.pipe.name == item.pipe.name for future in list(futures.values()))
            yield Page(source.resources.with_pipe(item.pipe), item.item, item.meta, ahead)


def incremental_of(resource: DltResource) -> Any:
    """Return the resource's ``dlt.sources.incremental``; None if it has none."""
    step = resource.incremental
    return getattr(step, "incremental", step)


def table_of_meta(resource: DltResource, meta: Any) -> str | None:
    """Return the table that a page names itself, by ``dlt.mark``; None if it names none. Takes over the hints that it brings."""
    if isinstance(meta, HintsMeta) and meta.hints:
        resource.merge_hints(meta.hints, meta.create_table_variant)
        return str(meta.hints["table_name"]) if meta.create_table_variant else None
    return meta.table_name if isinstance(meta, TableNameMeta) else None


def brings_hints(meta: Any) -> bool:
    """Return whether a page brings hints, which change keys and types of its table."""
    return isinstance(meta, HintsMeta) and bool(meta.hints)


def is_file(meta: Any) -> bool:
    """Return whether a page is a file for a destination to import (``dlt.mark.with_file_import``)."""
    return isinstance(meta, ImportFileMeta)


def is_schema_only(items: Any) -> bool:
    """Return whether a page is ``dlt.mark.materialize_table_schema``, which has no rows."""
    return isinstance(items, MaterializedEmptyList)


def state_to_text(state: Any) -> str:
    """Return a part of the state as JSON that people can read and edit: a time is "!timestamp 2026-01-01T00:00:00+00:00".

    A text that begins with "!" gets another one before it.
    """
    return json.dumps(_renamed(json.loads(json.typed_dumps(state)), _to_tag))


def state_from_text(text: str) -> Any:
    """Return what ``state_to_text`` wrote. Raises ValueError."""
    return _renamed(json.loads(text), _from_tag)


def _renamed(value: Any, rename: Any) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(each, rename) for name, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, rename) for each in value]
    return rename(value) if isinstance(value, str) else value


def _to_tag(text: str) -> str:
    number = ord(text[0]) - PUA_START if text else -1
    for tag, code in _CODES.items():
        if number == code:
            return f"!{tag} {text[1:]}"
    return f"!{text}" if text.startswith("!") else text


def _from_tag(text: str) -> Any:
    if not text.startswith("!"):
        return text
    if text.startswith("!!"):
        return text[1:]
    tag, _, rest = text[1:].partition(" ")
    if tag not in _CODES:
        raise ValueError(f"!{tag} is none of {', '.join(f'!{each}' for each in _CODES)}")
    try:
        return DECODERS[_CODES[tag]](rest)
    except ArithmeticError:
        raise ValueError(f"{rest} is no number") from None
