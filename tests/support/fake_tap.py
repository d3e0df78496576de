#!/usr/bin/env python3
"""A Singer tap for tests, without packages: prints what its config says.

Config: ``streams`` by name, each ``{"schema", "key_properties", "rows"}``, with ``rows`` as a list, or as a number, of which it
makes ``{"id": 0, "text": "row 0"}`` and so on; ``state_every`` rows a STATE with the last id; ``script``: lines to print as they
are; ``exit`` and ``discover_exit``: exit codes; ``sleep`` seconds after each STATE; ``final``: whether a STATE is the last line;
``cut``: what follows it, without a newline.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

USUAL_SCHEMA = {"properties": {"id": {"type": "integer"}, "text": {"type": ["null", "string"]}}}


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("config", "state", "catalog", "properties"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--discover", action="store_true")
    options = parser.parse_args()
    config = loaded(options.config)
    streams = config.get("streams", {})
    if options.discover:
        print(json.dumps({"streams": [entry(name, about) for name, about in streams.items()]}))
        return int(config.get("discover_exit", 0))
    state, catalog = loaded(options.state), loaded(options.catalog or options.properties)
    print("INFO starts with state", json.dumps(state), file=sys.stderr, flush=True)
    for line in config.get("script", ()):
        print(line)
    bookmarks: dict[str, Any] = dict(state.get("bookmarks", {}))
    for stream in catalog.get("streams", ()):
        name = stream["tap_stream_id"]
        if stream["selected"] and name in streams:
            read(name, streams[name], config, bookmarks)
    if config.get("final") and bookmarks:
        print(json.dumps({"type": "STATE", "value": {"bookmarks": bookmarks}}))
    print(config.get("cut", ""), end="", flush=True)
    return int(config.get("exit", 0))


def loaded(path: str | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    return found


def entry(name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    schema = about.get("schema", USUAL_SCHEMA)
    return {"tap_stream_id": name, "stream": name, "schema": schema, "metadata": [], "key_properties": ["id"]}


def read(name: str, about: Mapping[str, Any], config: Mapping[str, Any], bookmarks: dict[str, Any]) -> None:
    schema, keys = about.get("schema", USUAL_SCHEMA), about.get("key_properties", ["id"])
    print(json.dumps({"type": "SCHEMA", "stream": name, "schema": schema, "key_properties": keys}))
    rows, every = about["rows"], config.get("state_every", 0)
    last = bookmarks.get(name, {}).get("id", -1)
    made = ({"id": number, "text": f"row {number}"} for number in range(rows)) if isinstance(rows, int) else rows
    count = 0
    for row in made:
        if row.get("id", 0) < last:
            continue  # as taps do, from the bookmark on
        print(json.dumps({"type": "RECORD", "stream": name, "record": row}))
        count += 1
        bookmarks[name] = {"id": row.get("id", 0)}
        if every and count % every == 0:
            print(json.dumps({"type": "STATE", "value": {"bookmarks": bookmarks}}), flush=True)
            time.sleep(config.get("sleep", 0))


sys.exit(main())
