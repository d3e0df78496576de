"""Sources and destinations of dlt."""

from mutants.mutant import Mutant

_PAGES, _TASK, _TABLES = "connectors/dlt/pages.py", "connectors/dlt/task.py", "connectors/dlt/tables.py"
_PAGES_TESTS = ("tests/unit/connectors/dlt/test_pages.py",)
_TABLES_TESTS = ("tests/unit/connectors/dlt/test_tables.py",)
_TASK_TESTS = ("tests/unit/connectors/dlt/test_task.py",)
_ONCE_TESTS = ("tests/integration/test_dlt_source.py",)

_DESTINATION, _STORE = "connectors/dlt/destination.py", "connectors/dlt/store.py"
_SINK_TESTS = ("tests/unit/connectors/dlt/test_sink.py",)
_LOADS_TESTS = ("tests/integration/test_dlt_sink.py",)

MUTANTS = (
    Mutant(
        "dlt-sink-pending",
        _DESTINATION,
        "        self._check_strategy()\n        self._complete()\n",
        "        self._check_strategy()\n        self._pipeline.drop_pending_packages()\n",
        "A load that a crash has left is dropped, so that rows which it had appended come again.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "dlt-sink-fence",
        _DESTINATION,
        "        self._check_fence(expected)\n",
        "",
        "A task that was believed dead loads the records of its successor again.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "dlt-sink-stale-fence",
        _DESTINATION,
        "        self._pipeline.sync_destination()\n        self._check_fence(expected)\n",
        "        self._check_fence(expected)\n",
        "Offsets are compared with those of the task's own folder, not with the destination's.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "dlt-sink-appends",
        _DESTINATION,
        "        self._check_strategy()\n",
        "",
        "A destination that cannot merge appends.",
        tests=_LOADS_TESTS,
    ),
    Mutant(
        "dlt-sink-state-of-topics",
        _DESTINATION,
        "                stored.setdefault(topic, {}).update(partitions)\n",
        "                stored[topic] = partitions\n",
        "A load without records of a partition forgets its offset.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "dlt-sink-tables-collide",
        _STORE,
        "            if other is not None:\n",
        "            if False:\n",
        "Two topics are mixed in one table.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "dlt-sink-columns-collide",
        _STORE,
        "            if written in seen and seen[written] != name:\n",
        "            if False:\n",
        "One of two fields is lost.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "dlt-sink-json-text",
        _STORE,
        "not pa.types.is_null(field.type) and not is_json(field):",
        "pa.types.is_nested(field.type) and not is_json(field):",
        "A text in a column of JSON fails its load.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "dlt-sink-forgets-to-complete",
        _STORE,
        "            self._offsets = None  # to complete the load when it is asked again\n",
        "",
        "After a load that failed, the task continues at the offsets before it, although it may take effect.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "dlt-order",
        _PAGES,
        'return incremental.row_order == "asc" or (',
        'return incremental.row_order != "desc" or (',
        "Rows that come newest first are lost at a crash.",
        tests=_PAGES_TESTS,
    ),
    Mutant(
        "dlt-transformer",
        _PAGES,
        "incremental is None or resource.is_transformer or resource.name in parents:",
        "incremental is None or resource.is_transformer:",
        "Rows of a transformer are lost at a crash, because its parent's state covers them.",
        tests=_PAGES_TESTS,
    ),
    Mutant(
        "dlt-open-range",
        _PAGES,
        'or incremental.range_start != "closed":',
        "or False:",
        "Rows with the last cursor of a page are lost at a crash.",
        tests=_PAGES_TESTS,
    ),
    Mutant(
        "dlt-ahead",
        _PAGES,
        "self._by_table(resource, items, table), None if page.ahead else resource.name)\n",
        "self._by_table(resource, items, table), resource.name)\n",
        "Pages that are made beside one another are lost at a crash.",
        tests=_PAGES_TESTS,
    ),
    Mutant(
        "dlt-no-revoke",
        _PAGES,
        "        self._output.offsets({resource: self._before.get(resource)})\n",
        "",
        "A wrong promise of an order loses rows although it was noticed.",
        tests=_PAGES_TESTS,
    ),
    Mutant(
        "dlt-large-state",
        _PAGES,
        "        if len(text) > _MOST_BYTES:\n",
        "        if False:\n",
        "A state that Kafka refuses fails the task at its commit, and says not why.",
        tests=_PAGES_TESTS,
    ),
    Mutant(
        "dlt-variant",
        _TABLES,
        "                others.setdefault(_variant(name, kind), [None] * len(values))[number] = value\n            except",
        "                pass\n            except",
        "A value of another type than its column is lost.",
        tests=_TABLES_TESTS,
    ),
    Mutant(
        "dlt-offset-early",
        _TASK,
        "                made[-1].source_partition, made[-1].source_offset = partition, offset\n",
        "                made[0].source_partition, made[0].source_offset = partition, offset\n",
        "The rest of a page is lost at a crash behind its first row.",
        tests=_TASK_TESTS,
    ),
    Mutant(
        "dlt-half-run",
        _TASK,
        "        if transactions is None or not (self._uncommitted and self._covered):\n",
        "        if transactions is None or not self._uncommitted:\n",
        "A run that is broken off is in the topic in part, and comes again.",
        tests=_ONCE_TESTS,
    ),
    Mutant(
        "dlt-secret-in-error",
        "connectors/dlt/reader.py",
        '    return {"text": hidden(text, secrets), "unreachable"',
        '    return {"text": text, "unreachable"',
        "A secret of the config is in the task's status.",
        tests=(f"{_TASK_TESTS[0]}::test_what_ends_a_run_fails_the_task_without_secrets",),
    ),
    Mutant(
        "dlt-environment",
        "connectors/dlt/loading.py",
        "    use_values(config.values)\n",
        "",
        "dlt takes secrets from the environment of the worker.",
        tests=("tests/unit/connectors/dlt/test_loading.py", *_TASK_TESTS),
    ),
)
