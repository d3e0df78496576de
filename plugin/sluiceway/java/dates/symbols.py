"""Lists the English names in Java's date formats: months, weekdays, eras and time zones."""

from __future__ import annotations

from typing import NamedTuple

ERAS = ("BC", "AD")
HALVES = ("AM", "PM")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def short(name: str) -> str:
    """Return the short name of a month or weekday."""
    return name[:3]


def indexed(names: tuple[str, ...], first: int) -> dict[str, int]:
    """Return the numbers of long and short names, counted from ``first``."""
    return {form: number for number, name in enumerate(names, first) for form in (name, short(name))}


class NamedZone(NamedTuple):
    """A time zone's name and its offset in minutes east of Greenwich."""

    name: str
    offset: int


ZONES = tuple(
    NamedZone(name, offset)
    for offset, names in (
        (0, ("UTC", "Coordinated Universal Time", "GMT", "Greenwich Mean Time", "WET", "Western European Time")),
        (
            60,
            (
                "CET",
                "Central European Time",
                "Central European Standard Time",
                "BST",
                "British Summer Time",
                "WEST",
                "Western European Summer Time",
            ),
        ),
        (
            120,
            (
                "CEST",
                "Central European Summer Time",
                "EET",
                "Eastern European Time",
                "Eastern European Standard Time",
                "IST",
                "CAT",
                "Central Africa Time",
                "SAST",
                "South Africa Standard Time",
            ),
        ),
        (180, ("EEST", "Eastern European Summer Time", "MSK", "Moscow Standard Time", "EAT", "East Africa Time")),
        (330, ("India Standard Time",)),
        (480, ("AWST", "Hong Kong Time", "HKT", "Singapore Time")),
        (540, ("JST", "Japan Standard Time", "Japan Time", "KST", "Korea Standard Time")),
        (600, ("AEST", "Australian Eastern Standard Time")),
        (660, ("AEDT", "Australian Eastern Daylight Time")),
        (720, ("NZST", "New Zealand Standard Time")),
        (780, ("NZDT", "New Zealand Daylight Time")),
        (-600, ("HST", "Hawaii Standard Time")),
        (-540, ("AKST", "Alaska Standard Time")),
        (-480, ("AKDT", "Alaska Daylight Time", "PST", "Pacific Standard Time")),
        (-420, ("PDT", "Pacific Daylight Time", "MST", "Mountain Standard Time")),
        (-360, ("MDT", "Mountain Daylight Time", "CST", "Central Standard Time")),
        (-300, ("CDT", "Central Daylight Time", "EST", "Eastern Standard Time")),
        (-240, ("EDT", "Eastern Daylight Time", "AST", "Atlantic Standard Time")),
        (-180, ("ADT", "Atlantic Daylight Time", "BRT", "Brasilia Time", "ART")),
        (-210, ("NST", "Newfoundland Standard Time")),
    )
    for name in names
)
"""The common ones of the several hundred zone names in Java."""
