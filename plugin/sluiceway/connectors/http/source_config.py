"""Defines the keys of HttpSource, many of which are those of castorm's connector, and its options. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluiceway.api import Partition
from sluiceway.config.definition import NO_DEFAULT, ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, EnumText, NonEmptyString, OrNull, Range
from sluiceway.connectors.http.connection import (
    AUTHORIZATION,
    CONNECTION,
    Server,
    check_headers,
    check_url,
    connection_keys,
    header_pairs,
    server_of,
)
from sluiceway.connectors.http.pointers import check_pairs, check_pointer, check_pointers, pairs_of
from sluiceway.connectors.http.retries import RetryOptions, retry_keys, retry_options
from sluiceway.connectors.keys import flag, refused_keys, text, whole

URL, METHOD, HEADERS = "http.request.url", "http.request.method", "http.request.headers"
PARAMS, BODY, TOPIC = "http.request.params", "http.request.body", "kafka.topic"
LIST, VALUE, OFFSETS = "http.response.list.pointer", "http.response.record.pointer", "http.response.record.offset.pointer"
ANSWER_OFFSETS, DIRECTION, VALUES = "http.response.offset.pointer", "http.response.list.order.direction", "http.response.values"
INITIAL, UNIT, INTERVAL = "http.offset.initial", "http.response.record.timestamp.unit", "http.timer.interval.millis"
PAGING, PAGING_POINTER = "http.paging", "http.paging.pointer"
PAGING_SIZE, PAGING_FIRST = "http.paging.size", "http.paging.first"
RATE, MOST_BYTES, CONDITIONAL = "http.requests.per.second", "http.response.max.bytes", "http.conditional.requests"
AUTH_TYPE = "http.auth.type"

KEY, TIMESTAMP = "key", "timestamp"
SEEN, ETAG, MODIFIED = "seen", "etag", "last.modified"
_REQUESTS, _RECORDS, _PAGES, _TIMES = "Requests", "Records", "Pages", "Times"

_IN_CASTORM = {
    "http.timer.catchup.interval.millis": "pages are read one after the other until the last one",
    "http.client.connection.timeout.millis": "http.timeout limits the wait for a connection, too",
    "http.client.read.timeout.millis": "http.timeout is in seconds",
    "http.client.proxy.host": "http.proxy.url names the proxy",
    "http.client.proxy.port": "http.proxy.url names the proxy",
    "http.client.proxy.username": "http.proxy.url names the proxy",
    "http.client.proxy.password": "http.proxy.url names the proxy",
    "http.request.template.factory": "templates have placeholders such as ${offset.timestamp}",
    "http.response.policy.codes.process": "statuses from 200 to 299 are answers",
    "http.response.policy.codes.skip": "304 is skipped with http.conditional.requests=true",
    "http.response.record.mapper": f"{VALUES} is the form of values",
    "http.response.record.timestamp.parser": "times are ISO 8601 or numbers",
    "http.response.record.timestamp.parser.pattern": "times are ISO 8601 or numbers",
    "http.response.record.timestamp.parser.zone": "times without a zone are UTC",
    "http.record.filter.factory": "records at or before the offset are left out",
    "http.record.sorter": f"{DIRECTION} is the order",
}

CONFIG = ConfigDef(
    [
        text(
            name=URL,
            default=NO_DEFAULT,
            validator=Check(check_url, "a URL"),
            importance=Importance.HIGH,
            group=CONNECTION,
            doc="The URL to read. It may have placeholders behind its host.",
        ),
        text(
            name=AUTH_TYPE,
            default=None,
            validator=OrNull(EnumText("None", "Basic")),
            importance=Importance.LOW,
            group="Security",
            doc=f"castorm's key: Basic is {AUTHORIZATION}=basic.",
        ),
        *connection_keys(),
        text(
            name=METHOD,
            default="GET",
            validator=EnumText("GET", "POST", "PUT"),
            importance=Importance.LOW,
            group=_REQUESTS,
            doc="The method.",
        ),
        text(
            name=PARAMS,
            default="",
            importance=Importance.HIGH,
            group=_REQUESTS,
            doc="Parameters of the query, such as since=${offset.timestamp}&page=${page.number}. One whose placeholder has no "
            "value yet is left out.",
        ),
        ConfigKey(
            name=HEADERS,
            type=Type.LIST,
            default="",
            validator=Check(check_headers, "headers"),
            importance=Importance.LOW,
            group=_REQUESTS,
            doc="Headers, in the form name:value, separated by commas, which may have placeholders like parameters. Secret ones "
            "belong into http.headers.secret.",
        ),
        text(
            name=BODY,
            default=None,
            importance=Importance.LOW,
            group=_REQUESTS,
            doc="The body, which may have placeholders; those of a JSON body stand in quotes or are numbers. One without a value "
            "is empty.",
        ),
        text(
            name=TOPIC,
            default=NO_DEFAULT,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc="The topic.",
        ),
        text(
            name=LIST,
            default="",
            validator=Check(check_pointer, "a JSON pointer"),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc="The JSON pointer to the list of records in the answer, such as /items; empty or / is the answer itself. An "
            "object there is one record.",
        ),
        text(
            name=VALUE,
            default="",
            validator=Check(check_pointer, "a JSON pointer"),
            group=_RECORDS,
            doc="The JSON pointer to the value within an item of the list.",
        ),
        text(
            name=OFFSETS,
            default="",
            validator=Check(check_pointers, "names and JSON pointers"),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc="Names, and JSON pointers within an item, such as key=/id, timestamp=/updated. key is the record's key, "
            "timestamp its timestamp. timestamp, or else the first other name, is the cursor: records up to the greatest one "
            "that was read are left out. All are in the offset, and in requests as ${offset.NAME}.",
        ),
        text(
            name=ANSWER_OFFSETS,
            default="",
            validator=Check(check_pointers, "names and JSON pointers"),
            group=_RECORDS,
            doc="Names, and JSON pointers within the last page of a run, such as token=/nextSyncToken, for ${offset.token} in "
            "the next run.",
        ),
        text(
            name=DIRECTION,
            default="IMPLICIT",
            validator=EnumText("ASC", "DESC", "IMPLICIT"),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc="ASC: the list is in the ascending order of the cursor on all pages, so that each record has an offset. "
            "Otherwise an offset is stored when all pages have been read.",
        ),
        text(
            name=VALUES,
            default="json",
            validator=EnumText("json", "string", "body"),
            group=_RECORDS,
            doc="The form of values: json is data without a schema, string its JSON as text, body the bytes of each answer.",
        ),
        text(
            name=UNIT,
            default="milliseconds",
            validator=EnumText("milliseconds", "seconds"),
            importance=Importance.LOW,
            group=_RECORDS,
            doc="The unit of timestamps that are numbers.",
        ),
        text(
            name=INITIAL,
            default="",
            validator=Check(check_pairs, "pairs of names and values"),
            group=_RECORDS,
            doc="The values of ${offset.NAME} before the first offset, such as timestamp=2026-01-01T00:00:00Z.",
        ),
        text(
            name=PAGING,
            default="none",
            validator=EnumText("none", "link", "next", "cursor", "page", "offset"),
            importance=Importance.HIGH,
            group=_PAGES,
            doc="How the next page is found: link by the header Link, next by a URL in the answer, cursor by a value in the "
            "answer, for ${page.cursor}, page by counting pages, for ${page.number}, offset by counting records, for "
            "${page.offset}.",
        ),
        text(
            name=PAGING_POINTER,
            default=None,
            validator=OrNull(Check(check_pointer, "a JSON pointer")),
            group=_PAGES,
            doc="The JSON pointer to the URL or the cursor of the next page. Null, empty, or missing: it was the last one.",
        ),
        ConfigKey(
            name=PAGING_SIZE,
            type=Type.INT,
            default=None,
            validator=OrNull(Range(1, 2**31 - 1)),
            importance=Importance.MEDIUM,
            group=_PAGES,
            doc="The records of a page, for ${page.size}. With page and offset, a smaller page is the last one; without it, an "
            "empty one is.",
        ),
        whole(PAGING_FIRST, 1, 0, _PAGES, "The number of the first page, for page."),
        whole(INTERVAL, 60_000, 0, _TIMES, "Milliseconds between the beginnings of two runs.", importance=Importance.HIGH),
        ConfigKey(
            name=RATE,
            type=Type.DOUBLE,
            default=0.0,
            validator=Range(0, 1_000_000),
            importance=Importance.MEDIUM,
            group=_TIMES,
            doc="The most requests in a second, such as 0.5; 0 is unlimited.",
        ),
        flag(
            name=CONDITIONAL,
            default=False,
            group=_REQUESTS,
            doc="Whether a request asks only for what has changed, by ETag and Last-Modified. For one page without placeholders.",
        ),
        whole(MOST_BYTES, 64 * 1024 * 1024, 1, _REQUESTS, "The most bytes of an answer."),
        *retry_keys(_TIMES, 1000),
        *refused_keys(_IN_CASTORM, _REQUESTS),
    ]
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The server, the requests, and the form of records. Times are in seconds; ``pause`` is the least between two requests."""

    server: Server
    url: str
    method: str
    params: Sequence[tuple[str, str]]
    headers: Sequence[tuple[str, str]]
    body: str | None
    topic: str
    list: str
    value: str
    offsets: Mapping[str, str]
    answer_offsets: Mapping[str, str]
    initial: Mapping[str, str]
    ascending: bool
    values: str
    in_seconds: bool
    paging: str
    paging_pointer: str
    page_size: int | None
    first_page: int
    interval: float
    pause: float
    conditional: bool
    most_bytes: int
    retries: RetryOptions

    @property
    def cursor(self) -> str | None:
        """The name by which records are known to be new; None if all of them are."""
        return cursor_of(self.offsets)

    @property
    def partition(self) -> Partition:
        """The source partition. The query may have secrets."""
        return {"url": self.url.partition("?")[0]}


def cursor_of(offsets: Mapping[str, str]) -> str | None:
    """Return the name among those of offsets that is the cursor."""
    return TIMESTAMP if TIMESTAMP in offsets else next((name for name in offsets if name != KEY), None)


def source_options(config: Mapping[str, str]) -> SourceOptions:
    """Return the options of a config. Raises ConfigError."""
    values = effective(CONFIG.parse(config))
    headers, size, rate = values[HEADERS], values[PAGING_SIZE], float(str(values[RATE]))
    return SourceOptions(
        server=server_of(values, URL),
        url=str(values[URL]),
        method=str(values[METHOD]).upper(),
        params=_params(str(values[PARAMS] or "")),
        headers=header_pairs(headers if isinstance(headers, list) else []),
        body=None if values[BODY] is None else str(values[BODY]),
        topic=str(values[TOPIC]),
        list=str(values[LIST] or ""),
        value=str(values[VALUE] or ""),
        offsets=pairs_of(OFFSETS, values[OFFSETS]),
        answer_offsets=pairs_of(ANSWER_OFFSETS, values[ANSWER_OFFSETS]),
        initial=pairs_of(INITIAL, values[INITIAL]),
        ascending=str(values[DIRECTION]).upper() == "ASC",
        values=str(values[VALUES]).lower(),
        in_seconds=str(values[UNIT]).lower() == "seconds",
        paging=str(values[PAGING]).lower(),
        paging_pointer=str(values[PAGING_POINTER] or ""),
        page_size=None if size is None else int(str(size)),
        first_page=int(str(values[PAGING_FIRST])),
        interval=int(str(values[INTERVAL])) / 1000,
        pause=1 / rate if rate else 0.0,
        conditional=bool(values[CONDITIONAL]),
        most_bytes=int(str(values[MOST_BYTES])),
        retries=retry_options(values),
    )


def effective(values: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """Return parsed values with castorm's kind of authorization as ours."""
    if str(values[AUTH_TYPE]).lower() == "basic" and str(values[AUTHORIZATION]).lower() == "none":
        return {**values, AUTHORIZATION: "basic"}
    return dict(values)


def _params(given: str) -> list[tuple[str, str]]:
    pairs = (each.partition("=") for each in given.split("&") if each.strip())
    return [(name.strip(), value.strip()) for name, _equals, value in pairs]
