"""The demo's shop on a real stack: orders and events reach the archive, and bad events the dead letter queue."""

from __future__ import annotations

import pytest

from sluiceway.stack import demo_shop
from support.eventually import eventually
from support.kafka import Kafka
from support.stack import START, RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]


def test_records_keep_flowing(stack: RunningStack) -> None:
    demo_shop.start(stack.connect, stack.home, print)
    archive, kafka = demo_shop.archive_file(stack.home / "demo"), Kafka(stack.addresses.bootstrap)

    def lines(part: str) -> list[str]:
        found = archive.read_text().splitlines() if archive.exists() else []
        return [line for line in found if part in line]

    try:
        for part in ("shop=garden", "session="):
            seen = len(eventually(lambda part=part: lines(part), within=2 * START, what=f"{part} in the archive"))
            eventually(lambda part=part, seen=seen: len(lines(part)) > seen, within=30, what=f"more {part} in the archive")
        assert all("email=hidden" in line for line in lines("shop=garden"))
        eventually(lambda: kafka.count(demo_shop.QUEUE), within=60, what="a record in the dead letter queue")
        applications = {stack.connect.application(name)["application"] for name in demo_shop.connector_configs(stack.home)}
        assert applications == {"demo"}
    finally:
        demo_shop.writer(stack.home).stop()
        for name in set(demo_shop.connector_configs(stack.home)) & set(stack.connect.connectors()):
            stack.connect.delete(name)
