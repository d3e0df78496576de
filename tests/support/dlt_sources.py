"""dlt sources for tests, as their users write them: five kinds, all local. Imported by readers' processes."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import dlt
import pyarrow as pa
from dlt.sources.filesystem import filesystem, read_csv, read_jsonl
from dlt.sources.rest_api import rest_api_source
from dlt.sources.sql_database import sql_table

START = dt.datetime(2026, 1, 1, 12, 30, 45, 123456, tzinfo=dt.timezone.utc)


def row(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"n{number}", "amount": number / 4, "even": number % 2 == 0}


@dlt.source(name="numbers")
def numbers(rows: int = 1000, page: int = 100, order: str | None = "asc", descends: bool = False, pause: float = 0.0) -> Any:
    """Numbers with a cursor. ``order`` is what the source says of it; ``descends`` is what it does."""

    said: Any = order

    @dlt.resource(name="numbers", primary_key="id")
    def resource(cursor: Any = dlt.sources.incremental("id", initial_value=-1, row_order=said)) -> Iterator[Any]:  # noqa: B008
        pages = range(cursor.last_value + 1, rows, page)
        for first in reversed(pages) if descends else pages:
            yield [row(number) for number in range(first, min(first + page, rows))]
            time.sleep(pause)

    return resource


@dlt.source(name="derived")
def derived(rows: int = 1000, page: int = 100, pause: float = 0.0) -> Any:
    """A resource with a cursor in order, and a transformer below it."""
    parent = numbers(rows, page, pause=pause).resources["numbers"]

    @dlt.transformer(name="squares", primary_key="id")
    def squares(items: list[dict[str, Any]]) -> Iterator[Any]:
        yield [{"id": each["id"], "square": each["id"] ** 2} for each in items]

    return [parent, parent | squares]


@dlt.resource(name="singles", primary_key="id")
def singles(
    rows: int = 10,
    pause: float = 0.0,
    cursor: Any = dlt.sources.incremental("id", initial_value=-1, row_order="asc"),  # noqa: B008
) -> Iterator[Any]:
    """Rows one by one."""
    for number in range(cursor.last_value + 1, rows):
        yield row(number)
        time.sleep(pause)


@dlt.resource(name="typed", primary_key="id", columns={"price": {"data_type": "decimal", "precision": 10, "scale": 2}})
def typed() -> Iterator[Any]:
    """A row with a value of each type."""
    yield [
        {
            "id": 1,
            "text": "a",
            "double": 0.5,
            "flag": True,
            "raw": b"ab",
            "at": START,
            "day": START.date(),
            "clock": START.time(),
            "price": decimal.Decimal("12.5"),
            "large": 2**70,
            "nested": {"a": [1, {"b": None}]},
        }
    ]


@dlt.resource(name="orders", primary_key="id")
def orders() -> Iterator[Any]:
    """A row with an object, and lists of objects and of values."""
    yield [{"id": 1, "address": {"city": "Ulm"}, "lines": [{"sku": "a", "tags": ["x", "y"]}, {"sku": "b"}]}]


def same_cursor(rows: int = 100) -> Any:
    """Rows that all have the highest cursor."""

    @dlt.resource(name="same")
    def same(cursor: Any = dlt.sources.incremental("at", row_order="asc")) -> Iterator[Any]:  # noqa: B008
        yield [{"id": number, "at": "2026-01-01"} for number in range(rows)]

    return same


@dlt.source(name="secretive")
def secretive(password: str = dlt.secrets.value, place: str = dlt.config.value) -> Any:
    """Tells what dlt has looked up for it, and what its process has."""

    @dlt.resource(name="told")
    def told() -> Iterator[Any]:
        yield [
            {
                "password": password,
                "place": place,
                "airflow": any(name.partition(".")[0] == "airflow" for name in sys.modules),
                "environment": sorted(os.environ),
                "arguments": list(sys.argv),
                "pid": os.getpid(),
            }
        ]

    return told


@dlt.resource(name="sockets")
def sockets() -> Iterator[Any]:
    """Tells each address that the process has connected to, or looked up."""
    asked: list[str] = []
    sys.addaudithook(lambda event, args: asked.append(f"{event} {args[1:2]}") if event.startswith("socket.") else None)
    yield [{"id": 1}]
    yield [{"id": 2}]
    with socket.socket() as made:  # the hook works
        made.connect_ex(("127.0.0.1", 1))
    yield [{"id": 3, "asked": asked}]


@dlt.resource(name="waiting")
def waiting(seconds: float = 600.0) -> Iterator[Any]:
    """A row, and a wait, as after an answer 429."""
    yield [{"id": 1}]
    time.sleep(seconds)


@dlt.resource(name="crashing")
def crashing(password: str = dlt.secrets.value, how: str = "raise") -> Iterator[Any]:
    """A row, and an error whose text has a secret; or the end of the process."""
    yield [{"id": 1}]
    if how == "exit":
        sys.exit(3)
    if how == "kill":
        os.kill(os.getpid(), 9)
    if how == "refused":
        raise ConnectionRefusedError(f"nobody at http://user:{password}@host")
    raise ValueError(f"wrong login {password}")


def rest(url: str, kind: str = "events") -> Any:
    """The API of ``support.dlt_rest``: pages, a cursor for pages, or events with an incremental cursor."""
    endpoints: dict[str, Any] = {
        "pages": {
            "path": "items",
            "paginator": {"type": "page_number", "base_page": 1, "total_path": "total_pages"},
            "data_selector": "data",
        },
        "cursor": {
            "path": "cursor",
            "paginator": {"type": "cursor", "cursor_path": "next", "cursor_param": "cursor"},
            "data_selector": "data",
        },
        "events": {
            "path": "events",
            "paginator": {"type": "offset", "limit": 100, "total_path": None},
            "data_selector": "data",
            "incremental": {
                "start_param": "since",
                "cursor_path": "updated_at",
                "initial_value": "2026-01-01T00:00:00Z",
                "row_order": "asc",
            },
        },
    }
    resources: Any = [{"name": kind, "primary_key": "id", "endpoint": endpoints[kind]}]
    return rest_api_source({"client": {"base_url": url}, "resources": resources}, name="rest")


def table(url: str, name: str, backend: Any = "sqlalchemy", pause: float = 0.0) -> Any:
    """The rows of a table by their number."""
    cursor = dlt.sources.incremental("id", initial_value=-1, row_order="asc")
    found = sql_table(url, table=name, backend=backend, chunk_size=100, incremental=cursor)
    return _slowed(found, pause)


def _slowed(resource: Any, pause: float) -> Any:
    """Return a resource that waits some seconds at each item: a row, or a page of Arrow."""
    return resource.add_map(lambda item: time.sleep(pause) or item) if pause else resource


def files(folder: str, kind: str = "jsonl", pause: float = 0.0) -> Any:
    """The rows of files, by a transformer."""
    listing = filesystem(bucket_url=folder, file_glob=f"*.{kind}", incremental=dlt.sources.incremental("modification_date"))
    return _slowed((listing | (read_csv() if kind == "csv" else read_jsonl(chunksize=100))).with_name(kind), pause)


@dlt.source(name="counting")
def counting(rows: int = 10) -> Any:
    """A source without a cursor, which gives all rows in each run, and counts its runs in the source's state."""

    @dlt.resource(name="all", write_disposition="replace")
    def everything() -> Iterator[Any]:
        state = dlt.current.source_state()
        state["runs"] = state.get("runs", 0) + 1
        yield [row(number) for number in range(rows)]

    return everything


def no_source() -> int:
    return 1


def broken() -> None:
    raise RuntimeError("broken by itself")


def measured(rows: int, arrow: bool, page: int = 1000) -> Any:
    """A resource that costs little itself, for benchmarks: rows of seven fields and a list, or pages of Arrow."""
    made = [
        {
            "id": number,
            "name": f"name-{number}",
            "amount": number / 4,
            "active": number % 2 == 0,
            "at": START + dt.timedelta(seconds=number),
            "city": f"city-{number % 10}",
            "zip": f"{number % 1000:05}",
            **({} if arrow else {"tags": ["a", "b"]}),
        }
        for number in range(page)
    ]
    items: Any = pa.Table.from_pylist(made) if arrow else made

    @dlt.resource(name="measured")
    def pages() -> Iterator[Any]:
        for _ in range(rows // page):
            yield items

    return pages
