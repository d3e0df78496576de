from __future__ import annotations

from sluiceway.connectors.verifiable.checker import check

from support.faults.rows import Row, table


def test_the_table_shows_each_row_and_what_is_not_known() -> None:
    done = Row("kill", "0 lost")
    done.judge(check([(0, 0), (0, 1), (0, 1), (0, 3)]))
    done.recovered(2.04)
    done.recovered(1.0)
    assert table([done, Row("cut", "RUNNING")]) == [
        "fault  expected  seen                                    lost  duplicated  s to recover",
        "-----  --------  --------------------------------------  ----  ----------  ------------",
        "kill   0 lost    4 records, at most 1 repeated in a row  1     1           2.0",
        "cut    RUNNING   did not finish                          -     -           -",
    ]
