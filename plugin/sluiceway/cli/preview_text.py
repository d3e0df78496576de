"""Formats a preview as text. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sluiceway.cli.findings import findings


def lines(name: str, config: Mapping[str, str], answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one connector's preview. Data is printed as JSON, so that a terminal executes none of it."""
    if answer["validation"] is not None:
        yield from findings(name, config, answer["validation"]).lines()
        return
    start = "the beginning" if answer["start"] == "beginning" else "the stored offsets"
    yield f"{name}: {len(answer['records'])} record(s) from {start}; nothing was written"
    for record in answer["records"]:
        yield from _record(record)
    yield from _target(answer["target"])
    for warning in answer["warnings"]:
        yield f"  warning: {warning}"
    if answer["error"]:
        yield f"  error: {answer['error']['message']}"
    if answer["note"]:
        yield f"  {answer['note']}"


def _record(record: Mapping[str, Any]) -> Iterator[str]:
    if "message" in record:
        message = record["message"]
        yield f"  {record['number']}. {message['topic']}-{message['partition']}@{message['offset']}"
        yield f"     in Kafka: {_bytes(message)}"
    else:
        source = record["before"]
        yield f"  {record['number']}. {_json(source['source_partition'])} {_json(source['source_offset'])}"
    if record["before"] is not None:
        yield f"     {'converted' if 'message' in record else 'read'}: {_data(record['before'])}"
    for step in record["steps"]:
        yield f"     {step['transform']}: {step['outcome']}"
        for image in step.get("records", ()):
            yield f"       {_data(image)}"
    for image in record.get("written", ()):
        yield f"     written to {image['topic']}: {_bytes(image)}"
    for image in record.get("put", ()):
        yield f"     put: {_data(image)}"
    error = record["error"]
    if error:
        yield f"     failed in {error['stage']} ({error.get('transform', error['class'])}): {error['message']}"
        yield f"     {error['outcome']}"


def _target(target: Mapping[str, Any] | None) -> Iterator[str]:
    if target is None:
        return
    if target.get("error"):
        yield f"  The target cannot be shown: {target['error']}"
    for text in target["target"] or ():
        yield f"  would write: {_plain(text)}"


def _data(image: Mapping[str, Any]) -> str:
    parts = [f"topic={_plain(image['topic'])}"]
    if image["partition"] is not None:
        parts.append(f"partition={image['partition']}")
    for name in ("key", "value"):
        if image[name]["data"] is not None or name == "value":
            parts.append(f"{name}={_json(image[name]['data'])}")
    if image["headers"]:
        parts.append(f"headers={_json({each['key']: each['data'] for each in image['headers']})}")
    return " ".join(parts) + (" (clipped)" if "clipped" in image else "")


def _bytes(image: Mapping[str, Any]) -> str:
    parts = [f"{name}={_readable(image[name])}" for name in ("key", "value") if image[name] is not None or name == "value"]
    parts += [f"header {_plain(each['key'])}={_readable(each['value'])}" for each in image["headers"]]
    return " ".join(parts) + (" (clipped)" if "clipped" in image else "")


def _readable(data: Mapping[str, Any] | None) -> str:
    if data is None:
        return "null"
    return _plain(data["text"]) if "text" in data else f"base64:{data['base64']}"


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=True)


def _plain(text: str) -> str:
    """Return a text in one line, with control characters escaped."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
