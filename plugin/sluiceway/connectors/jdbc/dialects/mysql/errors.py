"""Classifies MySQL's and MariaDB's errors by number; their SQLSTATE is too coarse. No I/O.

Source: https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
https://mariadb.com/kb/en/mariadb-error-code-reference/.
"""

from __future__ import annotations

from sluiceway.connectors.jdbc.dialects.errors import ErrorKind, error_number, kind_by_number, numbered_kind, numbers

_NUMBERS = {
    ErrorKind.AGAIN: numbers(
        "1015 1020 1021 1028 1030 1037 1040 1041 1047 1114 1135 1180 1203 1205 1206 1207 1213 1226 1290 1317 1412 1614 1637 "
        "1689 1792 1836 1969 3024 3572 3101"
    ),
    ErrorKind.UNREACHABLE: numbers("0 1053 1077 1079 1152 1153 1158 1159 1160 1161 1184 1927 2002 2003 2006 2013 2055 4031"),
    ErrorKind.CHANGED: numbers("1054 1146 1136"),
    ErrorKind.RECORD: numbers(
        "1048 1062 1171 1216 1217 1230 1263 1264 1265 1292 1364 1365 1366 1367 1369 1406 1411 1416 1441 1451 1452 1525 1557 "
        "1586 1644 1690 1859 1906 3140 3819 3906 4025 4078"
    ),
    # PyMySQL raises these as OperationalError, like a lost connection.
    ErrorKind.DENIED: numbers("1044 1045 1064 1142 1143 1227"),
}
_REFUSED = numbers("1044 1045 1049 1130 1698")


def code_kind(code: int) -> ErrorKind:
    """Return the kind of an error by the code of the server or of the client library."""
    return kind_by_number(code, _NUMBERS, lambda each: 2000 <= each < 3000)


def error_kind(error: BaseException) -> ErrorKind:
    """Return the kind of a driver's error."""
    return numbered_kind(error, code_kind)


def refuses_login(error: BaseException) -> bool:
    """Return whether a failed connection is the server's refusal."""
    return error_number(error) in _REFUSED
