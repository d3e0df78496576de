from __future__ import annotations

import subprocess
import sys

CODE = """
import threading
import psutil
from sluiceway.kafka.native_memory import limit_arenas, release_free_memory
limit_arenas()
process = psutil.Process()
kept = []
def fill():
    data = [bytes(2000) for _ in range(20_000)]
    kept.append(data[::50])
threads = [threading.Thread(target=fill) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
before = process.memory_info().rss
release_free_memory()
print(before - process.memory_info().rss)
"""


def test_memory_that_threads_have_freed_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 20_000_000


def test_another_c_library_is_left_alone() -> None:
    code = (
        "import ctypes; ctypes.CDLL = lambda _: object()\n"
        "from sluiceway.kafka.native_memory import limit_arenas, release_free_memory\n"
        "limit_arenas(); release_free_memory()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
