"""``sluiceway signal``."""

from __future__ import annotations

import pytest

from sluiceway.cli.main import main
from unit.cli.pretend_client import PretendClient, out


def test_a_signal_names_tables_and_further_data(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["signal", "a", "execute-snapshot", "public.t", "public.u", "--data", '{"type": "blocking"}', "--id", "s1"]) == 0
    data = {"type": "blocking", "data-collections": ["public.t", "public.u"]}
    assert api.asked == [("send_signal", "a", "execute-snapshot", data, "s1")]
    assert out(capsys) == ["Signal s1 sent to topic p-signal"]


def test_a_signal_needs_no_data(api: PretendClient) -> None:
    assert main(["signal", "a", "stop-snapshot"]) == 0
    assert api.asked == [("send_signal", "a", "stop-snapshot", {}, None)]


@pytest.mark.parametrize("data", ["{", "[]", "1"])
def test_data_that_is_no_json_object_is_refused(api: PretendClient, capsys: pytest.CaptureFixture[str], data: str) -> None:
    assert main(["signal", "a", "log", "--data", data]) == 1
    assert "--data must be a JSON object" in capsys.readouterr().err
    assert api.asked == []
