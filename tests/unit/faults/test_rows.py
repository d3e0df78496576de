from __future__ import annotations

import pytest

from sluiceway.connectors.verifiable.checker import check
from support.faults.rows import REQUIRED, Row, ranges, table, without_a_line, without_a_test


def test_the_table_shows_each_line_in_the_matrix_s_order_and_what_is_not_known() -> None:
    done = Row((1, 2, 3), "kill", "0 lost", holds=True)
    done.judge(check([(0, 0), (0, 1), (0, 1), (0, 3)]))
    done.recovered(2.04)
    done.recovered(1.0)
    assert table([Row((33,), "cut", "RUNNING"), done]) == [
        "row  fault  expected  seen                                    lost  duplicated  s to recover",
        "---  -----  --------  --------------------------------------  ----  ----------  ------------",
        "1-3  kill   0 lost    4 records, at most 1 repeated in a row  1     1           2.0",
        "33   cut    RUNNING   FAILED: did not finish                  -     -           -",
    ]


@pytest.mark.parametrize(("numbers", "text"), [((), ""), ((7,), "7"), ((3, 1, 2, 5), "1-3, 5"), ((40, 38), "38, 40")])
def test_numbers_are_written_as_ranges(numbers: tuple[int, ...], text: str) -> None:
    assert ranges(numbers) == text


def test_rows_that_nothing_shows_are_named() -> None:
    every = [(number,) for number in REQUIRED]
    assert without_a_test(every) == "none"
    assert without_a_test(each for each in every if each not in {(2,), (3,), (35,)}) == "2-3, 35"


def test_a_row_whose_tests_failed_has_no_line_that_holds() -> None:
    rows = [Row((number,), "fault", "holds", holds=number != 22) for number in REQUIRED]
    assert without_a_line(rows) == "22"
    assert without_a_line([*rows, Row((21, 22), "another", "holds", holds=True)]) == "none"
