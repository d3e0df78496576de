"""The connectors page without Airflow and without drivers, in a real browser and on a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from sluiceway.herder import Herder
from sluiceway.provider.progress.probe import KafkaProbe
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.storage.factory import open_stores
from support.browser import chromium
from support.dashboard import StaticAirflow
from support.kafka import Kafka, worker_for
from support.page import Cluster, PageServer, Ui, opened


@pytest.fixture(scope="module")
def kafka(kafka_bootstrap: str) -> Kafka:
    return Kafka(kafka_bootstrap)


@pytest.fixture
def name(unique: Callable[[str], str]) -> str:
    """A connector name that no other test uses."""
    return unique("connector")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def cluster(kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[Cluster]:
    strings = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
    worker = worker_for(kafka_bootstrap, unique, **strings)
    with open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        dashboard = Dashboard(worker, herder, stores.config, KafkaProbe(worker, client_id="page"), StaticAirflow())
        dashboard.start()
        with PageServer(herder, dashboard) as server:
            yield Cluster(worker, herder, server.url)
        dashboard.stop()


@pytest.fixture
def ui(browser: Browser, cluster: Cluster) -> Iterator[Ui]:
    with opened(browser, cluster.url) as ui:
        yield ui
