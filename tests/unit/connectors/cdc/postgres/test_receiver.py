"""What parameters of the output plugin a receiver refuses. The rest runs on a real server: tests/cdc."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.postgres.receiver import check_parameters
from sluiceway.errors import ConnectError


@pytest.mark.parametrize("parameter", [("streaming", "on"), ("binary", "true"), ("proto_version", "2")])
def test_other_forms_of_messages_are_refused(parameter: tuple[str, str]) -> None:
    check_parameters({"proto_version": "1", "streaming": "off", "publication_names": "p"})
    with pytest.raises(ConnectError, match=f"{parameter[0]}={parameter[1]} is not supported"):
        check_parameters(dict([parameter]))
