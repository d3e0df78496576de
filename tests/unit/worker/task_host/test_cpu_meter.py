"""The share of a core that a task's thread uses."""

from __future__ import annotations

import threading
import time

import pytest

from sluiceway.worker.task_host import host
from sluiceway.worker.task_host.host import CpuMeter


def test_the_share_is_that_of_the_tasks_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_SHARE_SECONDS", 0.0)
    meter, entered, end = CpuMeter(), threading.Event(), threading.Event()

    def idle() -> None:
        meter.enter("idle")
        entered.set()
        end.wait()
        meter.leave("idle")

    thread = threading.Thread(target=idle)
    thread.start()
    entered.wait()
    meter.enter("busy")
    began, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < 0.2:
        pass
    share = 0.2 / (time.monotonic() - began)  # a busy machine leaves this thread less than a core
    assert meter.share("busy") == pytest.approx(share, abs=0.15)
    assert meter.share("idle") == 0.0
    meter.leave("busy")
    end.set()
    thread.join()
    assert meter.share("busy") == meter.share("idle") == 0.0
