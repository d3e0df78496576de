"""Detects running Kafka Connect workers: the members of the group ``group.id``, whose protocol type is ``connect``."""

from __future__ import annotations

import logging
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from sluiceway.kafka.answers import refusal

log = logging.getLogger(__name__)

_REQUEST_SECONDS = 10.0
_PROTOCOL_TYPE = "connect"


def connect_workers(admin: AdminClient, group_id: str) -> list[str]:
    """Return the hosts of the Kafka Connect workers with this ``group.id``, empty if the cluster does not tell.

    Takes one request of a few milliseconds if there is no such group.
    """
    try:
        if not _is_other_group_type(admin, group_id):
            return []
        # Newer calls support consumer groups only. This one lists all groups and is slower, so it comes second.
        groups: list[Any] = admin.list_groups(group=group_id, timeout=_REQUEST_SECONDS)
    except KafkaException as exception:
        error = exception.args[0]
        level = logging.WARNING if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED else logging.DEBUG
        log.log(level, "Cannot see whether Kafka Connect workers with group.id=%s are up: %s", group_id, error.str())
        return []
    return [
        member.client_host.lstrip("/")
        for group in groups
        if group.id == group_id and group.protocol_type == _PROTOCOL_TYPE
        for member in group.members
    ]


def _is_other_group_type(admin: AdminClient, group_id: str) -> bool:
    """Return whether the group exists and is not a consumer group."""
    error = refusal(admin.describe_consumer_groups([group_id], request_timeout=_REQUEST_SECONDS)[group_id])
    if error is None or error.code() == KafkaError.GROUP_ID_NOT_FOUND:
        return False
    if error.code() == KafkaError._INVALID_ARG:
        return True
    raise KafkaException(error)
