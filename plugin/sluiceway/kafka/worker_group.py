"""Whether real Kafka Connect workers are up: members of the group that ``group.id`` names, with a protocol of their own."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

log = logging.getLogger(__name__)

_REQUEST_SECONDS = 10.0
_PROTOCOL_TYPE = "connect"


def connect_workers(admin: AdminClient, group_id: str) -> list[str]:
    """Return the hosts of the Kafka Connect workers with this ``group.id``, none where nobody may or can tell now.

    Costs one small request, some milliseconds, as long as there never were any.
    """
    try:
        if not _is_of_another_kind(admin, group_id):
            return []
        # The newer calls know consumer groups only; this one asks for all groups, so it comes second.
        groups = admin.list_groups(group=group_id, timeout=_REQUEST_SECONDS)
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


def _is_of_another_kind(admin: AdminClient, group_id: str) -> bool:
    """Whether there is such a group that is none of consumers."""
    try:
        admin.describe_consumer_groups([group_id], request_timeout=_REQUEST_SECONDS)[group_id].result()
    except KafkaException as exception:
        code = exception.args[0].code()
        if code == KafkaError.GROUP_ID_NOT_FOUND:
            return False
        if code == KafkaError._INVALID_ARG:
            return True
        raise
    return False
