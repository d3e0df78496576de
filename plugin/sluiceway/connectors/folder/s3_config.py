"""Defines the keys of the folder source that only S3 has."""

from __future__ import annotations

import re

from sluiceway.config.definition import ConfigValue
from sluiceway.config.validators import Check
from sluiceway.connectors.folder.format_config import MEDIUM, choice_key, number_key, text_key
from sluiceway.errors import ConfigError

AFTER_READ_TAG = "after.read.tag"
LISTING_ORDER = "listing.order"
ANY, ASCENDING = "any", "ascending"
LISTING_WHOLE_INTERVAL_MS = "listing.whole.interval.ms"
NOTIFICATIONS_QUEUE_URL = "notifications.sqs.queue.url"

_GROUP = "S3"
_TAG = re.compile(r"(?!aws:)([\w +\-.:/@]{1,128})=([\w +\-.:/@=]{0,256})")


def _check_tag(name: str, value: ConfigValue) -> None:
    if not _TAG.fullmatch(str(value)):
        raise ConfigError(
            name,
            value,
            "must be key=value, with up to 128 and 256 of the characters that S3 allows (letters, digits, blanks, and _.:/=+-@), "
            "and no key that begins with aws:",
        )


def _check_queue_url(name: str, value: ConfigValue) -> None:
    if not re.fullmatch(r"(https?://[^/@\s]+/\S+)?", str(value)):
        raise ConfigError(
            name, value, "must be the URL of a queue, such as https://sqs.eu-central-1.amazonaws.com/123456789012/new"
        )


def tag_of(value: ConfigValue) -> tuple[str, str]:
    """Return the key and the value of a tag."""
    key, _, text = str(value).partition("=")
    return key, text


S3_READING = (
    choice_key(
        LISTING_ORDER,
        ANY,
        (ANY, ASCENDING),
        _GROUP,
        f"Whether keys of new objects sort after those of older ones, as with the date in them. With {ASCENDING}, a scan lists "
        "only what sorts after the last object, which is one request if there is nothing. What does not sort so, and objects "
        f"that are replaced, are found after {LISTING_WHOLE_INTERVAL_MS}. Each path is a pattern or a folder with its own order.",
    ),
    number_key(
        LISTING_WHOLE_INTERVAL_MS,
        60 * 60 * 1000,
        0,
        _GROUP,
        f"With {LISTING_ORDER}={ASCENDING}, milliseconds after which all objects are listed.",
    ),
    text_key(
        name=NOTIFICATIONS_QUEUE_URL,
        default="",
        validator=Check(_check_queue_url, "URL of a queue"),
        importance=MEDIUM,
        group=_GROUP,
        doc="URL of a queue of SQS that gets the notifications ObjectCreated:* of the bucket, by S3, SNS, or EventBridge. Tasks "
        "then look at a new object at once; scans find it, too. The queue must be for this connector alone, which deletes its "
        "messages.",
    ),
    text_key(
        name=AFTER_READ_TAG,
        default="sluiceway=read",
        validator=Check(_check_tag, "key=value"),
        importance=MEDIUM,
        group=_GROUP,
        doc="The tag, as key=value, for objects of which all records are in Kafka, and for their markers. They keep other tags.",
    ),
)
