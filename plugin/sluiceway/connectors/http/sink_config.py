"""Defines the keys of HttpSink, which are those of Aiven's connector and some more, and its options. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from sluiceway.api import BatchLimits
from sluiceway.config.connector import NAME
from sluiceway.config.definition import NO_DEFAULT, ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, EnumText, NonEmptyString, OrNull, Range
from sluiceway.connectors.http.connection import (
    CONNECTION,
    Server,
    check_headers,
    check_url,
    connection_conflicts,
    connection_keys,
    header_pairs,
    server_of,
)
from sluiceway.connectors.http.retries import BACKOFF, RETRIES, RetryOptions, retry_keys, retry_options
from sluiceway.connectors.keys import flag, refused_keys, text, whole

URL, DELETE_URL, METHOD, VALUES = "http.url", "http.delete.url", "http.method", "http.values"
CONTENT_TYPE, HEADERS, NULLS = "http.headers.content.type", "http.headers.additional", "behavior.on.null.values"
BATCHING, BATCH_SIZE, AS_ARRAY, REFUSED = "batching.enabled", "batch.max.size", "batch.json.as.array", "batch.on.refused"
PREFIX, SUFFIX, SEPARATOR = "batch.prefix", "batch.suffix", "batch.separator"
ORDER, IN_FLIGHT, IDEMPOTENCY = "http.order", "http.max.in.flight", "http.idempotency.header"

PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_FIELD = re.compile(r"(key|value)(\.[^.]+)+")
_SIMPLE = ("topic", "partition", "offset", "key")
_REQUESTS, _BATCHES, _DELIVERY = "Requests", "Batches", "Delivery"
_MOST_WAITING = 10_000
_WRITTEN = "Line breaks and spaces count"

CONFIG = ConfigDef(
    [
        text(
            name=URL,
            default=NO_DEFAULT,
            validator=Check(check_url, "a URL"),
            importance=Importance.HIGH,
            group=CONNECTION,
            doc="The URL, such as https://api.example.com/items/${key}. ${topic}, ${partition}, ${offset}, ${key}, and fields "
            "such as ${value.customer.id} or ${key.id} are those of the record, as steps of the path or in the query.",
        ),
        *connection_keys(),
        text(
            name=METHOD,
            default="POST",
            validator=EnumText("POST", "PUT", "PATCH", "DELETE"),
            importance=Importance.HIGH,
            group=_REQUESTS,
            doc="The method. With DELETE, no body is sent.",
        ),
        text(
            name=VALUES,
            default="text",
            validator=EnumText("text", "json"),
            group=_REQUESTS,
            doc="The form of values. text: texts, bytes, and numbers as they are, structs, maps, and lists as JSON. json: all as "
            "JSON, a text in quotes.",
        ),
        text(
            name=CONTENT_TYPE,
            default=None,
            validator=OrNull(NonEmptyString()),
            importance=Importance.LOW,
            group=_REQUESTS,
            doc="The Content-Type. By default application/json for http.values=json, and none for text.",
        ),
        ConfigKey(
            name=HEADERS,
            type=Type.LIST,
            default="",
            validator=Check(check_headers, "headers"),
            importance=Importance.LOW,
            group=_REQUESTS,
            doc="More headers, in the form name:value, separated by commas. Secret ones belong into http.headers.secret.",
        ),
        text(
            name=NULLS,
            default="fail",
            validator=EnumText("fail", "ignore", "delete"),
            group=_REQUESTS,
            doc="Records without a value: fail makes them bad records, ignore leaves them out, delete sends DELETE to the URL.",
        ),
        text(
            name=DELETE_URL,
            default=None,
            validator=OrNull(Check(check_url, "a URL")),
            importance=Importance.LOW,
            group=_REQUESTS,
            doc=f"The URL of DELETE for records without a value, if it is not that of {URL}.",
        ),
        flag(name=BATCHING, default=False, group=_BATCHES, doc="Whether a request may have several records."),
        ConfigKey(
            name=BATCH_SIZE,
            type=Type.INT,
            default=500,
            validator=Range(1, 1_000_000),
            importance=Importance.MEDIUM,
            group=_BATCHES,
            doc="The most records of a request.",
        ),
        flag(
            name=AS_ARRAY, default=False, group=_BATCHES, doc="Whether a request has a JSON array, also one of a single record."
        ),
        text(
            name=PREFIX, default=None, group=_BATCHES, doc=f"Before the first record of a request; empty by default. {_WRITTEN}."
        ),
        text(
            name=SUFFIX,
            default=None,
            group=_BATCHES,
            doc=f"After the last record of a request; a line break by default. {_WRITTEN}.",
        ),
        text(name=SEPARATOR, default=None, group=_BATCHES, doc=f"Between records; a line break by default. {_WRITTEN}."),
        text(
            name=REFUSED,
            default="split",
            validator=EnumText("split", "report"),
            group=_BATCHES,
            doc="A request of several records that is refused: split sends its halves, to find the bad ones; report takes all of "
            "them for bad. Split needs a server that takes nothing of what it refuses.",
        ),
        text(
            name=ORDER,
            default="partition",
            validator=EnumText("partition", "key", "none"),
            group=_DELIVERY,
            doc="Which records are sent one after the other: those of a partition, or those of a key. With none, all may be on "
            "their way at the same time.",
        ),
        whole(IN_FLIGHT, 4, 1, _DELIVERY, "The most requests at the same time.", importance=Importance.MEDIUM),
        text(
            name=IDEMPOTENCY,
            default="Idempotency-Key",
            importance=Importance.LOW,
            group=_DELIVERY,
            doc="The header with a key of the request, by which a server knows one that it has done. It is of the connector's "
            "name, the topic, the partition, and the offsets. Empty: no header.",
        ),
        *retry_keys(_DELIVERY, 3000),
        *refused_keys({"kafka.retry.backoff.ms": f"requests are repeated as {BACKOFF} and {RETRIES} say"}, _DELIVERY),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The server, and the form of requests. ``name`` is the connector's; ``order`` is partition, key, or none."""

    name: str
    server: Server
    url: str
    delete_url: str
    method: str
    as_json: bool
    headers: Mapping[str, str]
    nulls: str
    batch: int
    prefix: bytes
    suffix: bytes
    separator: bytes
    splits: bool
    order: str
    in_flight: int
    idempotency_header: str
    retries: RetryOptions
    limits: BatchLimits


def sink_options(config: Mapping[str, str]) -> SinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    as_array = bool(values[AS_ARRAY])
    as_json = as_array or str(values[VALUES]).lower() == "json"
    in_batches = bool(values[BATCHING])
    prefix, suffix, separator = ("[", "]", ",") if as_array else ("", "\n", "\n") if in_batches else ("", "", "")
    additional, retries = values[HEADERS], retry_options(values)
    content_type = values[CONTENT_TYPE] or ("application/json" if as_json else None)
    headers = {} if content_type is None else {"Content-Type": str(content_type)}
    headers |= dict(header_pairs(additional if isinstance(additional, list) else []))
    delete_url = values[DELETE_URL]
    return SinkOptions(
        name=config.get(NAME, ""),
        server=server_of(values, URL),
        url=str(values[URL]),
        delete_url=str(values[URL] if delete_url is None else delete_url),
        method=str(values[METHOD]).upper(),
        as_json=as_json,
        headers=headers,
        nulls=str(values[NULLS]).lower(),
        batch=int(str(values[BATCH_SIZE])) if in_batches else 1,
        prefix=config.get(PREFIX, prefix).encode(),  # parsed values have no spaces at their ends
        suffix=config.get(SUFFIX, suffix).encode(),
        separator=config.get(SEPARATOR, separator).encode(),
        splits=str(values[REFUSED]).lower() == "split",
        order=str(values[ORDER]).lower(),
        in_flight=int(str(values[IN_FLIGHT])),
        idempotency_header=str(values[IDEMPOTENCY] or ""),
        retries=retries,
        limits=BatchLimits(
            records=_MOST_WAITING,
            backoff=retries.backoff,
            longest_backoff=retries.longest_backoff,
            unreachable=retries.unreachable,
        ),
    )


def sink_conflicts(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    problems = connection_conflicts(values)
    for name in (URL, DELETE_URL):
        if values[name] is not None and (problem := _template_problem(str(values[name]))):
            problems[name] = problem
    deletes = str(values[NULLS]).lower() == "delete"
    target = DELETE_URL if values[DELETE_URL] is not None else URL
    if deletes and "${key" not in str(values[target]):
        problems[target] = f"needs ${{key}} with {NULLS}=delete, or DELETE would be for all records"
    if not deletes and values[DELETE_URL] is not None:
        problems[DELETE_URL] = f"needs {NULLS}=delete"
    separated = [name for name in (PREFIX, SUFFIX, SEPARATOR) if config.get(name)]
    if values[AS_ARRAY] and separated:
        problems[separated[0]] = f"is not used with {AS_ARRAY}=true"
    if values[AS_ARRAY] and str(values[METHOD]).upper() == "DELETE":
        problems[AS_ARRAY] = f"cannot be true with {METHOD}=DELETE, which sends no body"
    if values[BATCHING] and str(values[METHOD]).upper() == "DELETE":
        problems[BATCHING] = f"cannot be true with {METHOD}=DELETE, which sends no body"
    return problems


def _template_problem(url: str) -> str:
    for name in PLACEHOLDER.findall(url):
        if name not in _SIMPLE and not _FIELD.fullmatch(name):
            return f"has ${{{name}}}; it may have {', '.join(f'${{{each}}}' for each in _SIMPLE)}, and ${{value.FIELD}}"
    if "$" in PLACEHOLDER.sub("", urlsplit(url).path):
        return "has a $ without a placeholder such as ${key}"
    return ""
