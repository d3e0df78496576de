"""Finds the next page of a list. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin

from sluiceway.connectors.http.client import Answer
from sluiceway.connectors.http.connection import origin_of, shown_url
from sluiceway.connectors.http.pointers import found_at, is_scalar, text_of
from sluiceway.connectors.http.source_config import PAGING, PAGING_POINTER, URL, SourceOptions
from sluiceway.errors import ConnectError

_LINK = re.compile(r"<([^>]*)>([^<]*)")
_NEXT = re.compile(r';\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|next\b)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    """A page to ask for. ``url`` is the one that the server has named; ``records`` is the number of those before it."""

    url: str | None = None
    number: int = 1
    records: int = 0
    cursor: str | None = None

    def values(self, options: SourceOptions) -> dict[str, Any]:
        """Return the values of placeholders."""
        found = {
            "page.number": self.number,
            "page.offset": self.records,
            "page.cursor": self.cursor,
            "page.size": options.page_size,
        }
        return {name: value for name, value in found.items() if value is not None}


def next_page(options: SourceOptions, page: Page, answer: Answer, content: Any, count: int) -> Page | None:
    """Return the page behind one with ``count`` records; None if that was the last one. Raises ConnectError."""
    if options.paging in ("page", "offset"):
        last = not count or (options.page_size is not None and count < options.page_size)
        return None if last else replace(page, number=page.number + 1, records=page.records + count)
    if options.paging == "cursor":
        cursor = _text(found_at(options.paging_pointer, content), answer)
        if cursor is not None and cursor == page.cursor:
            raise ConnectError(f"{shown_url(answer.url)} has the same cursor for the next page again. Check {PAGING_POINTER}.")
        return None if cursor is None else replace(page, cursor=cursor)
    target = None
    if options.paging == "link":
        target = link_of(answer.headers.get("link", ""))
    elif options.paging == "next":
        target = _text(found_at(options.paging_pointer, content), answer)
    if target is None:
        return None
    url = urljoin(answer.url, target)
    if origin_of(url) != origin_of(answer.url):
        told = f"{shown_url(answer.url)} has its next page at {shown_url(url)}"
        raise ConnectError(f"{told}, another server, to which no credentials go. Check {URL}, also http or https.")
    if url in (page.url, answer.url):
        raise ConnectError(f"{shown_url(answer.url)} is its own next page. Check {PAGING}.")
    return replace(page, url=url)


def link_of(header: str) -> str | None:
    """Return the URL of the next page in a header Link (RFC 8288); None if it has none."""
    return next((url for url, rest in _LINK.findall(header) if _NEXT.search(rest)), None)


def _text(value: Any, answer: Answer) -> str | None:
    if value is None or value is False or value == "":
        return None
    if not is_scalar(value):
        raise ConnectError(f"{shown_url(answer.url)} has a {type(value).__name__} at {PAGING_POINTER}, and no URL or cursor.")
    return text_of(value)
