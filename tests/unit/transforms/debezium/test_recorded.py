"""Debezium's transforms with the recorded outcomes of the published classes (``support.record_debezium``)."""

from __future__ import annotations

import json
import logging
from random import Random

import pytest

from support.debezium_cases import CASES, records_for
from support.debezium_transforms import outcomes
from support.record_debezium import COUNT, RECORDED


@pytest.mark.parametrize("name", CASES)
def test_outcomes_are_debeziums(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[name]
    assert len(recorded) == len(CASES[name])
    for seed, (config, expected) in enumerate(zip(CASES[name], recorded, strict=True)):
        records = records_for(name, Random(seed), COUNT, recorded=True)  # noqa: S311
        # tests/integration/test_debezium_transforms.py prints both results in full.
        assert outcomes(f"io.debezium.transforms.{name}", config, records) == expected, (seed, config)
