"""A stand-in for the calls of an admin client that progress is read with."""

from __future__ import annotations

import pytest

from support.offsets import OffsetsAdmin


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> OffsetsAdmin:
    """Return a cluster that answers the functions of ``sluiceway.kafka.admin``."""
    made = OffsetsAdmin()
    admin = "sluiceway.kafka.admin"
    monkeypatch.setattr("sluiceway.kafka.clients.admin_client", made.admin_client)
    monkeypatch.setattr("sluiceway.kafka.committed_offsets.CommittedOffsets", lambda *_: made)
    for name in ("partition_count", "partition_counts", "offsets_at"):
        monkeypatch.setattr(f"{admin}.{name}", getattr(made, name))
    monkeypatch.setattr(f"{admin}.beginning_offsets", made.offsets("begins", made.begins))
    monkeypatch.setattr(f"{admin}.end_offsets", made.offsets("ends", made.ends))
    return made
