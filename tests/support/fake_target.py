#!/usr/bin/env python3
"""A Singer target for tests, without packages: appends what it gets to the file ``out``, as lines of JSON.

Config: ``out``; ``upsert``: whether records of a stream with the same key properties replace each other, within a run; ``exit``:
the exit code, without an echo of the STATE unless it is 0; ``once``: a file whose absence makes the target fail, which it then
creates; ``crash_after`` records: dies there by SIGKILL; ``echo``: ``last``, ``none``, ``partial``, ``more`` (the STATE, and a
line after it), ``each``; ``sleep`` seconds after each record; ``hang`` seconds at the end; ``deaf``: ends without having read;
``noise``: so many lines on standard error; ``environment``: writes its variables to this file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    path = Path(parser.parse_args().config)
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if "environment" in config:
        modes = {"file": stat.S_IMODE(path.stat().st_mode), "folder": stat.S_IMODE(path.parent.stat().st_mode)}
        about = {"variables": dict(os.environ), "path": str(path), **modes}
        Path(config["environment"]).write_text(json.dumps(about), encoding="utf-8")
    for number in range(config.get("noise", 0)):
        print(f"INFO noise {number} of {config.get('password')}", file=sys.stderr, flush=True)
    if "once" in config and not Path(config["once"]).exists():
        Path(config["once"]).touch()
        print("ERROR not yet", file=sys.stderr)
        return 3
    if config.get("deaf"):
        return int(config.get("exit", 0))
    state = load(config)
    time.sleep(config.get("hang", 0))
    if not config.get("exit"):
        echo(state, config.get("echo", "last"))
    return int(config.get("exit", 0))


def load(config: dict[str, Any]) -> Any:
    """Write what is read, and return the last STATE."""
    state, count, keys = None, 0, {}
    rows: dict[str, str] = {}
    with Path(config["out"]).open("a", buffering=1, encoding="utf-8") as out:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if message["type"] == "STATE":
                state = message["value"]
                if config.get("echo") == "each":
                    print(json.dumps(state), flush=True)
            elif message["type"] == "SCHEMA":
                keys[message["stream"]] = message["key_properties"]
                out.write(line.decode())
            else:
                names = keys[message["stream"]]
                if config.get("upsert"):
                    rows[json.dumps([message["stream"], *(message["record"][name] for name in names)])] = line.decode()
                else:
                    out.write(line.decode())
                count += 1
                if count == config.get("crash_after"):
                    out.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(config.get("sleep", 0))
        out.writelines(rows.values())
    return state


def echo(state: Any, how: str) -> None:
    if how in ("last", "more"):
        print(json.dumps(state))
    if how == "more":
        print("done")
    if how == "partial":
        print(json.dumps({"kafka": dict(list(state["kafka"].items())[:-1])}))


sys.exit(main())
