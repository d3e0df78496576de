"""Checks whether the keys of HttpSource go together. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.definition import ConfigValue
from sluiceway.connectors.http.connection import connection_conflicts
from sluiceway.connectors.http.pointers import pairs_of, placeholders
from sluiceway.connectors.http.source_config import (
    ANSWER_OFFSETS,
    BODY,
    CONDITIONAL,
    DIRECTION,
    ETAG,
    HEADERS,
    INITIAL,
    LIST,
    MODIFIED,
    OFFSETS,
    PAGING,
    PAGING_POINTER,
    PAGING_SIZE,
    PARAMS,
    SEEN,
    URL,
    VALUE,
    VALUES,
    cursor_of,
    effective,
)

_OWN_NAMES = frozenset({SEEN, ETAG, MODIFIED})
_PAGE_NAMES = {"cursor": "page.cursor", "page": "page.number", "offset": "page.offset"}


def source_conflicts(given: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    values = effective(given)
    problems = connection_conflicts(values)
    offsets, answer_offsets = pairs_of(OFFSETS, values[OFFSETS]), pairs_of(ANSWER_OFFSETS, values[ANSWER_OFFSETS])
    for key, names in ((OFFSETS, offsets), (ANSWER_OFFSETS, answer_offsets)):
        if own := _OWN_NAMES & set(names):
            problems[key] = f"cannot have the name {min(own)}, which is used for other things"
    if twice := set(offsets) & set(answer_offsets):
        problems[ANSWER_OFFSETS] = f"has {min(twice)}, which {OFFSETS} has, too"
    if str(values[DIRECTION]).upper() == "ASC" and cursor_of(offsets) is None:
        problems[DIRECTION] = f"cannot be ASC without a cursor in {OFFSETS}, such as timestamp=/updated"
    if str(values[VALUES]).lower() == "body":
        problems |= _body_problems(values)
    return problems | _paging_problems(values) | _template_problems(values, {*offsets, *answer_offsets})


def _body_problems(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    problems = {key: f"cannot be set with {VALUES}=body" for key in (LIST, VALUE, OFFSETS) if values[key]}
    if str(values[PAGING]).lower() in ("page", "offset"):
        problems[PAGING] = f"cannot be {values[PAGING]} with {VALUES}=body, which does not tell an empty page"
    return problems


def _paging_problems(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    kind, problems = str(values[PAGING]).lower(), {}
    if kind in ("next", "cursor") and not values[PAGING_POINTER]:
        problems[PAGING_POINTER] = f"is needed with {PAGING}={kind}"
    if kind not in ("next", "cursor") and values[PAGING_POINTER]:
        problems[PAGING_POINTER] = f"is for {PAGING}=next or cursor, and that is {kind}"
    used = _used(values)
    name = _PAGE_NAMES.get(kind)
    if name is not None and name not in used:
        problems[PARAMS] = f"needs ${{{name}}} with {PAGING}={kind}, or all pages would be the first one"
    if values[CONDITIONAL] and (kind != "none" or used):
        problems[CONDITIONAL] = "is for one page without placeholders: an ETag of a page says nothing of the others"
    return problems


def _template_problems(values: Mapping[str, ConfigValue], names: set[str]) -> dict[str, str]:
    kind, problems = str(values[PAGING]).lower(), {}
    initial = pairs_of(INITIAL, values[INITIAL])
    known = {f"offset.{each}" for each in names} | {_PAGE_NAMES.get(kind, "")} - {""}
    known |= {"page.size"} if values[PAGING_SIZE] is not None else set()
    for key in (URL, PARAMS, HEADERS, BODY):
        value = values[key]
        for name in placeholders(",".join(value) if isinstance(value, list) else str(value or "")):
            if name not in known:
                problems[key] = f"has ${{{name}}}; it may have {', '.join(f'${{{each}}}' for each in sorted(known)) or 'none'}"
            elif key == URL and name.startswith("offset.") and name.removeprefix("offset.") not in initial:
                problems[key] = f"has ${{{name}}}, which needs a first value in {INITIAL}"
            elif key == URL and name == "page.cursor":
                problems[key] = f"cannot have ${{{name}}}, which the first page has not: use it in {PARAMS}"
    if unknown := set(initial) - names:
        problems[INITIAL] = f"has {min(unknown)}, which neither {OFFSETS} nor {ANSWER_OFFSETS} has"
    return problems


def _used(values: Mapping[str, ConfigValue]) -> set[str]:
    headers = values[HEADERS]
    texts = [str(values[key] or "") for key in (URL, PARAMS, BODY)] + (headers if isinstance(headers, list) else [])
    return {name for each in texts for name in placeholders(each)}
