"""Writes for the demo, as a shop would: events into a log and orders into a SQLite table, a few each second.

Runs as a process of its own, ``python -m sluiceway.stack.demo_writer FOLDER``, until it is ended. Uses Python's library only, so
that it is small.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import time
from contextlib import closing
from datetime import datetime, timezone
from itertools import count
from pathlib import Path

SECONDS = 0.5
"""Between two events. Each second one has an order."""
BAD_EVERY = 20
"""One event of so many is not JSON, so that the dead letter queue of the demo gets records."""

_EVENTS = ("page viewed", "product viewed", "added to cart", "search", "login", "checkout")
_PRODUCTS = (("gate latch", 12.9), ("fence post", 8.5), ("garden hose", 24.0), ("watering can", 15.75), ("rain barrel", 79.0))
_NAMES = ("ada", "edsger", "grace", "barbara", "donald", "radia", "leslie", "frances")
_TRACE = 'Traceback (most recent call last): File "/srv/shop/pay.py", line {line}, in charge: TimeoutError: payment gateway'
_TABLE = """
CREATE TABLE IF NOT EXISTS orders (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, email TEXT NOT NULL, product TEXT NOT NULL,
    quantity INTEGER NOT NULL, total REAL NOT NULL
)"""

Order = tuple[str, str, str, int, float]


def log_file(folder: Path) -> Path:
    return folder / "shop.log"


def database_file(folder: Path) -> Path:
    return folder / "shop.db"


def event(number: int, choose: random.Random, at: datetime) -> str:
    """Return a line of the shop's log: JSON, or one that the shop's logger has not formatted."""
    if number % BAD_EVERY == 0:
        return _TRACE.format(line=choose.randrange(20, 200))
    fields = {
        "at": at.isoformat(timespec="milliseconds"),
        "event": choose.choice(_EVENTS),
        "session": f"{choose.getrandbits(32):08x}",
        "millis": choose.randrange(2, 400),
    }
    return json.dumps(fields)


def order(choose: random.Random, at: datetime) -> Order:
    """Return the columns of an order without its id."""
    product, price = choose.choice(_PRODUCTS)
    quantity = choose.randrange(1, 5)
    email = f"{choose.choice(_NAMES)}@example.com"
    return at.isoformat(sep=" ", timespec="seconds"), email, product, quantity, round(price * quantity, 2)


def prepare(folder: Path) -> None:
    """Create the log and the table unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    log_file(folder).touch()
    with closing(sqlite3.connect(database_file(folder))) as database, database:
        database.execute(_TABLE)


def write(folder: Path, number: int, choose: random.Random) -> None:
    """Append an event, and with each second one insert an order."""
    now = datetime.now(timezone.utc)
    with log_file(folder).open("a", encoding="utf-8") as log:
        log.write(event(number, choose, now) + "\n")
    if number % 2 == 0:
        with closing(sqlite3.connect(database_file(folder))) as database, database:
            statement = "INSERT INTO orders (at, email, product, quantity, total) VALUES (?, ?, ?, ?, ?)"
            database.execute(statement, order(choose, now))


def main(folder: Path) -> None:
    """Write until the process is ended, or until the folder is gone."""
    choose = random.Random()  # noqa: S311 (sample data)
    for number in count(1):
        if not log_file(folder).exists():
            return
        write(folder, number, choose)
        time.sleep(SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
