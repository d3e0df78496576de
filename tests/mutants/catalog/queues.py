"""Sources whose system keeps the position, and Redis."""

from mutants.mutant import Mutant

_KIT = "api/queue_source.py"
_STREAM, _GROUP, _SINK = "connectors/redis/stream_source.py", "connectors/redis/group_source.py", "connectors/redis/sink.py"
_KIT_TESTS = ("tests/unit/api/test_queue_source.py",)
_RUNTIME_TESTS = ("tests/unit/runtime/source/test_queue_source_task.py",)
_SOURCES, _SINKS = "tests/integration/test_redis_sources.py::", "tests/integration/test_redis_sink.py::"

MUTANTS = (
    Mutant(
        "queue-early",
        _KIT,
        "        held.left -= 1\n        if not held.left:\n",
        "        held.left -= 1\n        if True:\n",
        "A message is acknowledged when Kafka has the first of its records.",
        tests=_KIT_TESTS,
    ),
    Mutant(
        "queue-order",
        _KIT,
        "            if self._task.acknowledges_in_order:\n",
        "            if False:\n",
        "A message is acknowledged before those that were received before it.",
        tests=_KIT_TESTS,
    ),
    Mutant(
        "queue-stale-handle",
        _KIT,
        "        return held.connection == self._connection or self._task.handles_outlive_connections\n",
        "        return True\n",
        "A handle of a lost connection is acknowledged by the next one.",
        tests=_KIT_TESTS,
    ),
    Mutant(
        "queue-held",
        _KIT,
        "min(self._limits.held - held, self._limits.messages)",
        "self._limits.messages",
        "A task holds more messages than it may.",
        tests=_KIT_TESTS,
    ),
    Mutant(
        "queue-pause-keeps",
        _KIT,
        "            self._return_ready()\n            self._task.idle(min",
        "            self._task.idle(min",
        "A paused task keeps messages from other consumers.",
        tests=_KIT_TESTS,
    ),
    Mutant(
        "queue-stop-silent",
        _KIT,
        "            self._acknowledge()\n            with self._lock:\n",
        "            with self._lock:\n",
        "What Kafka has is handed out again after a stop.",
        tests=_KIT_TESTS,
    ),
    Mutant(
        "queue-end",
        _KIT,
        "        return self._started().ended\n",
        "        return None\n",
        "A scheduled run ends before it has read what the queue has.",
        tests=_RUNTIME_TESTS,
    ),
    Mutant(
        "queue-bad-lost",
        _KIT,
        "        self.left = len(message.records) + bool(message.bad)\n",
        "        self.left = len(message.records)\n",
        "A message is acknowledged before its bad record is in the dead letter queue.",
        tests=(f"{_SOURCES}test_a_text_that_is_not_utf_8_is_a_bad_record",),
    ),
    Mutant(
        "queue-resume",
        "runtime/source/worker_source_task.py",
        """            log_errors("The task's resumed()", self._task.resumed)\n""",
        "            pass\n",
        "A queue source that was paused never reads again.",
        tests=_RUNTIME_TESTS,
    ),
    Mutant(
        "redis-end",
        _STREAM,
        "        return [(self._partitions[name], self._offset(name, str(self._positions[name]))) for name in changed]\n",
        "        return []\n",
        "A stream that is read from its end loses what comes before the first record after a restart.",
        tests=(f"{_SOURCES}test_a_stream_that_is_read_from_its_end_keeps_the_end",),
    ),
    Mutant(
        "redis-lost-data",
        _STREAM,
        "            if seen is not None and last < seen:\n",
        "            if False:\n",
        "A Redis that has lost data is read from nowhere, without an error.",
        tests=(f"{_SOURCES}test_a_redis_that_has_lost_data_fails_the_task_with_what_to_do",),
    ),
    Mutant(
        "redis-pending",
        _GROUP,
        "            if old := self._receive_old(client, share):\n                return old\n",
        "",
        "Entries that were delivered before a restart wait for the idle time.",
        tests=(f"{_SOURCES}test_entries_are_acknowledged_once_kafka_has_them",),
    ),
    Mutant(
        "redis-deleted",
        _GROUP,
        "        if not fields:  # it",
        "        if False:  # it",
        "An entry that was deleted is an empty record.",
        tests=(f"{_SOURCES}test_entries_that_were_deleted_while_they_were_pending_are_done",),
    ),
    Mutant(
        "redis-full",
        _SINK,
        "        with client.pipeline(transaction=not options.command.by_key) as pipeline:\n",
        "        with client.pipeline(transaction=False) as pipeline:\n",
        "A Redis that becomes full has a later record without an earlier one.",
        tests=(f"{_SINKS}test_a_server_that_becomes_full_in_the_middle_has_all_or_nothing_of_a_pipeline",),
    ),
    Mutant(
        "redis-recreated",
        _SINK,
        "        elif dict(found[0][1]) != item.value:\n",
        "        elif False:\n",
        "Records of a topic that was created again are taken for those of the old one.",
        tests=(f"{_SINKS}test_a_topic_that_is_created_again_is_not_taken_for_its_old_records",),
    ),
    Mutant(
        "pump-wake",
        "api/pump.py",
        "            if was_empty:\n",
        "            if False:\n",
        "A task sleeps while items wait.",
        tests=("tests/unit/api/test_pump.py",),
    ),
    Mutant(
        "pump-bound",
        "api/pump.py",
        "self._changed.wait_for(lambda: len(self._ready) < self._most or self._stopping)",
        "self._changed.wait_for(lambda: True)",
        "A source that is faster than Kafka fills the memory.",
        tests=("tests/unit/api/test_pump.py",),
    ),
)
