"""Turns a NameNode's errors, which the client gives as text with a Java stack trace, into OSErrors. No I/O."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from sluiceway.connectors.files.filesystem.base import storage_errors

_REMOTE = re.compile(r'(?:Fatal)?RPCError\("[\w.]*?(?P<kind>[\w$]+)", "(?P<text>.*?)(?:\\n|"\))')
_NUMBERS = {
    "AccessControlException": errno.EACCES,
    "DSQuotaExceededException": errno.EDQUOT,
    "NSQuotaExceededException": errno.EDQUOT,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
}


@contextmanager
def hdfs_errors(action: str, path: str) -> Iterator[None]:
    """Do as ``storage_errors``, with the NameNode's reason instead of its stack trace."""
    with storage_errors(action, path):
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:
            known = remote_error(error)
            if known is None:
                raise
            raise known from error


def remote_error(error: Exception) -> OSError | None:
    """Return a NameNode's error as an OSError, None if it is another one."""
    found = _REMOTE.search(str(error))
    if found is None:
        return None
    text = found["text"].replace('\\"', '"').rstrip(". ")
    return OSError(_NUMBERS.get(found["kind"], errno.EIO), text)
