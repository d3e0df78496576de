"""What a source task sees of the runtime."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import OffsetStorageReader, TransactionContext


class WorkerSourceTaskContext:
    """See ``SourceTaskContext``."""

    def __init__(
        self,
        configs: Mapping[str, str],
        offset_storage_reader: OffsetStorageReader,
        transaction_context: TransactionContext | None = None,
    ) -> None:
        self.configs = configs
        self.offset_storage_reader = offset_storage_reader
        self.transaction_context = transaction_context
