"""Calls that may block for longer than there is time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """Return what ``call`` returns. Raises TimeoutError after ``seconds``; the call then goes on in a thread of its own."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001 (raised again by result())
            done.set_exception(error)

    threading.Thread(target=run, name=what, daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():  # the call's own
            raise
        raise TimeoutError(f"{what} took longer than {seconds:g} s") from None
