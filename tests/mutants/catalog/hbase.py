"""HBase's source and sink."""

from mutants.mutant import Mutant

_SOURCE, _SINK, _RANGES = "connectors/hbase/source.py", "connectors/hbase/sink.py", "connectors/hbase/ranges.py"
_CLIENT = "connectors/hbase/client.py"
_TESTS, _UNIT = "tests/integration/test_hbase.py::", "tests/unit/connectors/hbase/test_ranges.py"

MUTANTS = (
    Mutant(
        "hbase-column-time",
        _CLIENT,
        "columns=self._columns(each.columns, each.timestamp),",
        "columns=self._columns(each.columns),",
        "A deleted column has the server's time, which hides later records.",
        tests=(_TESTS + "test_a_row_that_is_deleted_and_put_in_one_millisecond_is_seen",),
    ),
    Mutant(
        "hbase-hidden",
        _SINK,
        "            used = last.used + 1\n",
        "            pass\n",
        "A record is hidden by a deletion of its row in the same millisecond.",
        tests=(_TESTS + "test_a_row_that_is_deleted_and_put_in_one_millisecond_is_seen",),
    ),
    Mutant(
        "hbase-again",
        _SINK,
        "        if last is not None and last.offset == item.offset:  # it is written again\n",
        "        if False:\n",
        "A deletion that is written again gets a smaller timestamp than before.",
        tests=(_TESTS + "test_any_records_of_one_key_end_as_in_the_topic",),
    ),
    Mutant(
        "hbase-whole",
        _SOURCE,
        "            rows = client.get(options.table, [each.key for each in found], columns=options.pairs)\n",
        "            pass\n",
        "A row lacks a column that was overwritten within the horizon.",
        tests=(_TESTS + "test_a_row_has_all_its_columns_although_one_is_newer_than_the_horizon",),
    ),
    Mutant(
        "hbase-rounds",
        _SINK,
        "        index = seen[row] = seen.get(row, -1) + 1\n",
        "        index = seen[row] = 0\n",
        "Records of one row are in one call, in which HBase keeps no order.",
        tests=(_TESTS + "test_any_records_of_one_key_end_as_in_the_topic",),
    ),
    Mutant(
        "hbase-others",
        _SINK,
        "                    yield from self._write_round([each])\n",
        "                    yield each[0], str(error)\n",
        "The records of a batch of which HBase refuses one are bad records.",
        tests=(_TESTS + "test_records_that_hbase_refuses_are_reported_and_the_others_written",),
    ),
    Mutant(
        "hbase-divided",
        _SOURCE,
        "    return max(read.start, read.reached or",
        "    return max(read.reached or",
        "A range that was divided off during a pass begins within the one before it.",
        tests=(_TESTS + "test_splits_merges_and_moves_change_nothing_of_a_pass",),
    ),
    Mutant(
        "hbase-units",
        _RANGES,
        "        while root not in stored and root in self.parents:\n",
        "        while False:\n",
        "A task takes the position of a range that another task reads.",
        tests=(_UNIT,),
    ),
    Mutant(
        "hbase-plan",
        _SOURCE,
        "        if self._first and (self._given or not self._asked):  # a preview never asks for them\n",
        "        if False:\n",
        "Rows are read before Kafka has the plan of the ranges.",
        tests=(_TESTS + "test_rows_are_read_only_after_the_plan_is_stored",),
    ),
    Mutant(
        "hbase-horizon",
        _SOURCE,
        "                until = now - self._options.horizon\n",
        "                until = now\n",
        "Cells are passed over that a region server writes late.",
        tests=(_TESTS + "test_cells_are_read_once_they_are_older_than_the_horizon",),
    ),
)
