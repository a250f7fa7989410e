"""Cron schedules: five fields, names for months and days, steps, ranges, and the @ words; in any time zone.

If both the day of the month and the day of the week are restricted, either is enough.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from msgspec import Struct

from pumice.api import duration

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of the week", 0, 7, DAYS),
)
SEARCHED_DAYS = 5 * 366  #: a day that does not come in five years never comes


class ScheduleError(ValueError):
    """The text is not a schedule; the message says what to write."""


class CronSchedule(Struct, frozen=True):
    """The times of a schedule. If `every_s` > 0, the schedule is a plain period of that many seconds instead."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  #: 0 is Sunday
    any_hour: bool
    any_day: bool
    any_weekday: bool
    every_s: float = 0.0

    def matches(self, day: datetime) -> bool:
        """Whether the schedule runs on this day at all."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month and in_week if self.any_day or self.any_weekday else in_month or in_week

    def next_after(self, moment: float, zone: tzinfo | None = None) -> float | None:
        """The first time of the schedule after `moment` (seconds since 1970); None if there is none in five years."""
        if self.every_s:
            return float(int(moment + self.every_s))
        where = zone or UTC
        local = datetime.fromtimestamp(moment, where)
        first = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0, tzinfo=None)
        for number in range(SEARCHED_DAYS):
            day = first + timedelta(days=number)
            if not self.matches(day):
                continue
            for hour in sorted(self.hours):
                if number or hour >= local.hour:
                    times = [found for found in self._times_of(day, hour, where) if found > moment]
                    if times:
                        return min(times)
        return None

    def _times_of(self, day: datetime, hour: int, zone: tzinfo) -> Iterator[float]:
        """The times in one hour of the clock: none if the clocks skip it; each twice if the hour comes twice and no hour is restricted."""
        for minute in self.minutes:
            for fold in (0, 1) if self.any_hour else (0,):
                local = day.replace(hour=hour, minute=minute, fold=fold, tzinfo=zone)
                moment = local.timestamp()
                if datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0) == local.replace(tzinfo=None, fold=0):
                    yield moment


def parse_schedule(text: str) -> CronSchedule:
    """The schedule that a text states. Raises ScheduleError."""
    text = text.strip()
    if text.startswith("@every "):
        try:
            period_s = duration(text.removeprefix("@every ").strip())
        except ValueError as error:
            raise ScheduleError(str(error)) from None
        if period_s < 1:
            raise ScheduleError(f'"{text}" is too often; write at least "@every 1s"')
        nothing: frozenset[int] = frozenset()
        return CronSchedule(nothing, nothing, nothing, nothing, nothing, True, True, True, period_s)
    if text.startswith("@") and text not in WORDS:
        raise ScheduleError(f'"{text}" is not a schedule; write {", ".join(WORDS)}, "@every 1h", or five fields')
    parts = WORDS.get(text, text).split()
    if len(parts) != len(FIELDS):
        raise ScheduleError(f'"{text}" has {len(parts)} fields; write five: minute hour day-of-month month day-of-week, as in "0 3 * * 1"')
    minutes, hours, days, months, weekdays = (_field(part, *field) for part, field in zip(parts, FIELDS, strict=True))
    weekdays = frozenset(day % 7 for day in weekdays)
    stars = [part[0] in "*?" for part in parts]
    return CronSchedule(minutes, hours, days, months, weekdays, stars[1], stars[2], stars[4])


def _field(text: str, what: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, what, 1, high, ()) if slash else 1
        if span in ("*", "?"):
            first, last = low, high
        else:
            start, dash, end = span.partition("-")
            first = _number(start, what, low, high, names)
            last = _number(end, what, low, high, names) if dash else high if slash else first
        if first > last:
            raise ScheduleError(f'"{part}" is not a range of the {what}; write the smaller number first')
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, what: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + low
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ScheduleError(f'"{text}" is not a {what}; write a number from {low} to {high}{", or a name" if names else ""}')
    return int(text)


def coming(schedule: CronSchedule, zone: tzinfo | None, since: float, now: float) -> float | None:
    """The first time of the schedule after `now`, or None. Periods are counted from `since`, not from `now`."""
    if schedule.every_s:
        return float(int(since + (max(0, (now - since) // schedule.every_s) + 1) * schedule.every_s))
    return schedule.next_after(now, zone)


def missed(schedule: CronSchedule, zone: tzinfo | None, since: float, now: float, limit: int = 100) -> tuple[float | None, int]:
    """The latest time of the schedule after `since` up to `now`, and the number of such times (counted up to `limit` + 1)."""
    if schedule.every_s:
        periods = int((now - since) // schedule.every_s)
        return (float(int(since + periods * schedule.every_s)) if periods > 0 else None), max(0, min(periods, limit + 1))
    latest, count, at = None, 0, schedule.next_after(since, zone)
    while at is not None and at <= now and count <= limit:
        latest, count = at, count + 1
        at = schedule.next_after(at, zone)
    if count > limit:  # so many times were missed that only the latest one matters: look for it from shortly before now
        latest = _latest_before(schedule, zone, now) or latest
    return latest, count


def _latest_before(schedule: CronSchedule, zone: tzinfo | None, now: float) -> float | None:
    for back_s in (3600.0, 86400.0, 32 * 86400.0, 367 * 86400.0):
        at, latest = schedule.next_after(now - back_s, zone), None
        while at is not None and at <= now:
            latest, at = at, schedule.next_after(at, zone)
        if latest is not None:
            return latest
    return None
