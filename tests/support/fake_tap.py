#!/usr/bin/env python3
"""A Singer tap for tests, without packages: prints what its config says.

Config: ``streams`` by name, each ``{"schema", "key_properties", "rows"}``, or ``rows`` as a number, of which it makes
``{"id": 0}`` and so on; ``state_every`` rows a STATE with the last id; ``script``: lines to print as they are; ``exit``: the exit code;
``pids``: a file for process ids; ``sleep`` seconds after each STATE; ``final``: whether a STATE is the last line; ``cut``: what follows it, without a newline.
"""

import json
import os
import sys
import time


def main() -> int:
    given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    if "--discover" in sys.argv:
        given["--config"] = sys.argv[sys.argv.index("--config") + 1]
    config = json.load(open(given["--config"]))
    streams = config.get("streams", {})
    if "--discover" in sys.argv:
        print(json.dumps({"streams": [entry(name, about) for name, about in streams.items()]}))
        return config.get("discover_exit", 0)
    state = json.load(open(given["--state"])) if "--state" in given else {}
    catalog = json.load(open(given.get("--catalog") or given["--properties"])) if len(given) > 1 else {"streams": []}
    if "pids" in config:
        with open(config["pids"], "a") as file:
            file.write(f"{os.getpid()}\n")
    print("INFO starts with state", json.dumps(state), file=sys.stderr, flush=True)
    for line in config.get("script", ()):
        print(line)
    bookmarks = dict(state.get("bookmarks", {}))
    for stream in catalog["streams"]:
        name = stream["tap_stream_id"]
        if stream["selected"] and name in streams:
            read(name, streams[name], config, bookmarks)
    if config.get("final") and bookmarks:
        print(json.dumps({"type": "STATE", "value": {"bookmarks": bookmarks}}))
    print(config.get("cut", ""), end="", flush=True)
    return config.get("exit", 0)


def entry(name, about):
    return {"tap_stream_id": name, "stream": name, "schema": schema_of(about), "metadata": [], "key_properties": ["id"]}


def schema_of(about):
    return about.get("schema") or {"properties": {"id": {"type": "integer"}, "text": {"type": ["null", "string"]}}}


def read(name, about, config, bookmarks):
    print(json.dumps({"type": "SCHEMA", "stream": name, "schema": schema_of(about), "key_properties": about.get("key_properties", ["id"])}))
    rows, every = about["rows"], config.get("state_every", 0)
    last = bookmarks.get(name, {}).get("id", -1)
    numbered = ({"id": number, "text": f"row {number}"} for number in range(rows)) if isinstance(rows, int) else rows
    count = 0
    for row in numbered:
        if row.get("id", 0) < last:
            continue  # as taps do, from the bookmark on
        print(json.dumps({"type": "RECORD", "stream": name, "record": row}))
        count += 1
        bookmarks[name] = {"id": row.get("id", 0)}
        if every and count % every == 0:
            print(json.dumps({"type": "STATE", "value": {"bookmarks": bookmarks}}), flush=True)
            time.sleep(config.get("sleep", 0))


sys.exit(main())
