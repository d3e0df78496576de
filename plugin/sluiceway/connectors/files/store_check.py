"""Asks a storage whether it lets us in. Runs on the API server."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sluiceway.connectors.files.store import Store
from sluiceway.errors import ConnectError, MissingToolError

log = logging.getLogger(__name__)

_CHECK_SECONDS = 10.0


def refusals(store: Store, folder: str) -> list[tuple[str, str]]:
    """Return the errors of keys if the storage refuses to be used. Waits a while for its answer."""
    try:
        answered(lambda: _check(store, folder), store.url)
    except MissingToolError as error:
        return [(store.path_key, str(error))]
    except ConnectError as error:
        if _is_refused_login(error):
            return [(key, str(error)) for key in store.login_keys or (store.path_key,)]
        return [(store.path_key, str(error))]
    return []


def _check(store: Store, folder: str) -> None:
    filesystem = store.connect()
    try:
        filesystem.check(folder)
    finally:
        filesystem.close()


def answered(check: Callable[[], None], what: str) -> None:
    """Run a check that may block, and log a warning if it takes too long."""
    pool = ThreadPoolExecutor(1, "storage-check")
    try:
        pool.submit(check).result(_CHECK_SECONDS)
    except TimeoutError:
        log.warning("%s did not answer within %.0f s", what, _CHECK_SECONDS)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _is_refused_login(error: BaseException) -> bool:
    text = f"{error} {error.__cause__!r}".lower()
    return any(
        sign in text for sign in ("credential", "accesskey", "signature", "gssapi", "kerberos", "authenticat", "private key")
    )
