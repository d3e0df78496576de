"""Messages with S3's event notifications."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus

import pytest

from sluiceway.connectors.folder.notifications import new_objects

KEY = "in/2026 11/ü+%41.csv"


def s3_event(*keys: str, name: str = "ObjectCreated:Put") -> dict[str, Any]:
    objects = [{"key": quote_plus(key, safe="/"), "size": 5, "eTag": "e", "sequencer": "00"} for key in keys]
    records = [
        {"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": name, "s3": {"bucket": {"name": "b"}, "object": each}}
        for each in objects
    ]
    return {"Records": records}


def of_sns(event: dict[str, Any]) -> dict[str, Any]:
    return {"Type": "Notification", "TopicArn": "arn:aws:sns:eu-central-1:1:t", "Message": json.dumps(event)}


def of_event_bridge(key: str, kind: str = "Object Created") -> dict[str, Any]:
    return {"version": "0", "source": "aws.s3", "detail-type": kind, "detail": {"bucket": {"name": "b"}, "object": {"key": key}}}


@pytest.mark.parametrize(
    ("body", "objects"),
    [
        (s3_event(KEY), [f"s3://b/{KEY}"]),
        (s3_event("a", "c", name="ObjectCreated:CompleteMultipartUpload"), ["s3://b/a", "s3://b/c"]),
        (s3_event("a", name="s3:ObjectCreated:Put"), ["s3://b/a"]),
        (s3_event("a", name="ObjectRemoved:Delete"), []),
        (s3_event("a", name="ObjectTagging:Put"), []),
        (of_sns(s3_event(KEY)), [f"s3://b/{KEY}"]),
        (of_event_bridge(KEY), [f"s3://b/{KEY}"]),
        (of_sns(of_event_bridge(KEY)), [f"s3://b/{KEY}"]),
        (of_event_bridge(KEY, "Object Deleted"), []),
        ({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}, []),
        ({"order": 5}, None),
        ({"Records": [{"eventName": "INSERT"}]}, None),
        ({"Records": [{"eventName": "ObjectCreated:Put", "s3": {}}]}, None),
        ({"Records": [5]}, None),
        ({"Records": 5}, None),
        ({"source": "aws.s3", "detail-type": "Object Created", "detail": []}, None),
        ([], None),
        ("text", None),
    ],
)
def test_the_objects_of_a_message(body: object, objects: list[str] | None) -> None:
    assert new_objects(json.dumps(body)) == objects


def test_a_message_that_is_no_json_is_none_of_s3() -> None:
    assert new_objects("<xml/>") is None
