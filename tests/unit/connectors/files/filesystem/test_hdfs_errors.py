"""Errors of a NameNode."""

from __future__ import annotations

import errno

import pytest

from sluiceway.connectors.files.filesystem.base import StorageError
from sluiceway.connectors.files.filesystem.hdfs import hdfs_errors, remote_error

_DENIED = (
    r'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=connect, access=WRITE, '
    r'inode=\"/\":hdfs:connect:drwxr-xr-x\n\tat org.apache.hadoop.hdfs.server.namenode.FSPermissionChecker.check(X.java:661)")'
)
_FULL = 'RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The DiskSpace quota of /lake is exceeded")'


def test_the_reason_comes_without_the_stack_trace() -> None:
    with pytest.raises(StorageError) as caught, hdfs_errors("create", "/lake/a"):
        raise RuntimeError(_DENIED)
    assert str(caught.value) == (
        'Cannot create /lake/a: Permission denied: user=connect, access=WRITE, inode="/":hdfs:connect:drwxr-xr-x. '
        "Let the user that runs the task do so."
    )


@pytest.mark.parametrize(("text", "number"), [(_DENIED, errno.EACCES), (_FULL, errno.EDQUOT)])
def test_numbers(text: str, number: int) -> None:
    found = remote_error(RuntimeError(text))
    assert found is not None
    assert found.errno == number


def test_other_errors_are_unchanged() -> None:
    assert remote_error(RuntimeError("connection refused")) is None
    with pytest.raises(FileNotFoundError), hdfs_errors("read", "/a"):
        raise FileNotFoundError(_FULL)
