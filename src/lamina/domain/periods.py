"""Which periods a query speaks of: "last May", "vor zwei Wochen", "on 7 March 2023". Pure, by tables of words.

Read are the languages of `period_words`, Chinese and Japanese, and dates in figures in any language. A period has to
be named in full: a lone "May" or "2023" may be anything. Relative ones are relative to the moment given, in its time
zone. A day or a month without a year is the last one that has begun. Dates such as 3/4/2023, which countries read
differently, are not read; neither are seasons, nor what begins or ends with a date ("since May").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Final, TypeAlias

from lamina.domain.day_spans import (
    AROUND,
    Span,
    ago,
    beside,
    date_of,
    days_from,
    month_beside,
    today_of,
    weekday_beside,
    year_of,
)
from lamina.domain.languages import languages_of
from lamina.domain.period_words import LEXICONS, Lexicon

__all__ = ["Period", "read_periods", "time_words"]


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` on and before `end`; and the words that say so, folded."""

    start: datetime
    end: datetime
    text: str


_Reader: TypeAlias = Callable[[re.Match[str], datetime], Span | None]
_Rule: TypeAlias = tuple[re.Pattern[str], _Reader]

_LONGEST: Final = 2_000
"""Characters: a longer query is a text, and its dates are not when something was that it asks for."""

_WORD: Final = re.compile(r"[^\W\d_]+")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_NEVER: Final = re.compile(r"(?!)")
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)(?!\d)"
_DAY: Final = r"(?P<day>[0-3]?\d)(?![\d:])(?:st|nd|rd|th|er|\.|o)?"
_COUNT: Final = r"\d{1,3}"


def read_periods(query: str, now: datetime) -> tuple[Period, ...]:
    """The periods that the query names, in the order in which it does; none where none is sure."""
    if len(query) > _LONGEST:
        return ()
    text = _fold(query)
    taken: list[tuple[int, int]] = []
    found: dict[int, Period] = {}
    for outside, rules in _rules(text):
        for pattern, read in rules:
            for match in pattern.finditer(text):
                if any(match.start() < end and start < match.end() for start, end in taken):
                    continue
                taken.append(match.span())
                try:
                    span = read(match, now)
                except (OverflowError, ValueError):  # there is no such day
                    continue
                if span is not None and not outside.search(text[: match.start()]):
                    found[match.start()] = Period(*span, match.group().strip())
    return tuple(found[start] for start in sorted(found))


def time_words(query: str) -> re.Pattern[str] | None:
    """Words that a text tells a time with, if the query asks for one ("When did …"), in its language; else None.

    To be looked for in texts without case. Names of months are not among them: they stand in dates that systems
    put before a text.
    """
    text = _fold(query[:_LONGEST])
    words = [
        word
        for lexicon, asks in ((LEXICONS[language], _asking(language)) for language in LEXICONS)
        if asks.search(text)
        for each in (lexicon.weekdays, *lexicon.units.values(), *lexicon.days.values())
        for word in each.replace(",", " ").split()
    ]
    return _word(_any(words)) if words else None


@cache
def _asking(language: str) -> re.Pattern[str]:
    return re.compile(rf"^\W*{_any(_fold(LEXICONS[language].when).split())}(?!\w)")


def _rules(text: str) -> Iterator[tuple[re.Pattern[str], tuple[_Rule, ...]]]:
    """What must not stand before a period, and what to look for: nothing of languages without a telling word there."""
    words = _WORD.findall(text)
    if any(character.isdigit() for character in text):
        yield _figures()
    if _HAN.search(text):
        yield _NEVER, _han()
    spoken = languages_of(words)
    for language, lexicon in LEXICONS.items():
        is_likely = not (lexicon.is_mistakable and spoken) or language in spoken
        if is_likely and not _telling(language).isdisjoint(words):
            yield _of(language)


def _fold(text: str) -> str:
    """Without case, marks and differences of form."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold().replace("\u2019", "'"))
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")


def _any(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first."""
    forms = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(re.escape(form).replace("_", r"\s+") for form in forms) + ")"


def _numbered(lists: str) -> dict[str, int]:
    """Each word of lists that are separated by commas, folded, and the number of its list, from 1 on."""
    return {word: number for number, words in enumerate(_fold(lists).split(","), start=1) for word in words.split()}


def _word(text: str, **parts: str) -> re.Pattern[str]:
    """A pattern of whole words, with these parts."""
    for name, part in parts.items():
        text = text.replace(f"<{name}>", part)
    return re.compile(rf"(?<!\w)(?:{text})(?!\w)")


# Rules


@cache
def _figures() -> tuple[re.Pattern[str], tuple[_Rule, ...]]:
    """2023-03-07, 2023-03, 2023/03/07, 7.3.2023, in 2023, im Jahr 2023."""
    year_first = rf"(?<![\w.,/-]){_YEAR}([-/])(?P<month>[01]?\d)(?:\2(?P<day>[0-3]?\d))?(?![\w/-])"
    day_first = rf"(?<![\w.,/-])(?P<day>[0-3]?\d)\.(?P<month>[01]?\d)\.{_YEAR}(?![\w/-])"
    within = {word for lexicon in LEXICONS.values() for word in _fold(lexicon.within).split()}
    noun = {word for lexicon in LEXICONS.values() for word in _numbered(lexicon.units["year"].split(",")[0])}
    outside = " ".join(lexicon.outside for lexicon in LEXICONS.values())

    def read(match: re.Match[str], now: datetime) -> Span:
        return date_of(now, match["year"], int(match["month"]), match["day"])

    rules = (
        (re.compile(year_first), read),
        (re.compile(day_first), read),
        (
            _word(rf"{_any(within)}\s+(?:(?:\w{{1,3}}'?\s*)?{_any(noun)}\s+)?{_YEAR}(?![.,]?\d)"),
            lambda match, now: year_of(now, int(match["year"])),
        ),
    )
    return _behind(outside), rules


def _behind(outside: str) -> re.Pattern[str]:
    """What ends with one of these words, and an article at most."""
    return re.compile(rf"(?<!\w){_any(_fold(outside).split())}\s+(?:\w{{1,3}}\s+)?$")


@cache
def _telling(language: str) -> frozenset[str]:
    """The folded words of which each period of this language has one."""
    lexicon = LEXICONS[language]
    days = [form for forms in lexicon.days.values() for form in _fold(forms).split()]
    units = [word for forms in lexicon.units.values() for word in _numbered(forms)]
    named = [*_numbered(lexicon.months), *_numbered(lexicon.weekdays), *units, *days]
    return frozenset(_WORD.findall(each)[-1] for each in named)


@cache
def _of(language: str) -> tuple[re.Pattern[str], tuple[_Rule, ...]]:
    """What must not stand before a period of this language, and what to look for."""
    lexicon = LEXICONS[language]
    rules = (*_dates(lexicon), *_relative_days(lexicon), *_counted(lexicon), *_sided(lexicon))
    return _behind(lexicon.outside), rules


def _dates(lexicon: Lexicon) -> Iterator[_Rule]:
    """7 March 2023, March 7, March 2023, in March."""
    months = _numbered(lexicon.months)
    parts = {
        "month": rf"(?P<month>{_any(months)})\.?",
        "day": _DAY,
        "year": _YEAR,
        "of": rf"(?:{_any(_fold(lexicon.between).split())}\s+)?",
        "in": _any(_fold(lexicon.within).split()),
    }

    def read(match: re.Match[str], now: datetime) -> Span:
        found = match.groupdict()
        return date_of(now, found.get("year"), months[found["month"]], found.get("day"))

    yield _word(r"<day>\s+<of><month>(?:(?:\s*,\s*|\s+)<of><year>)?", **parts), read
    if lexicon.is_month_first:
        yield _word(r"<month>\s+(?:the\s+)?<day>(?:(?:\s*,\s*|\s+)<year>)?", **parts), read
    yield _word(r"<month>(?:\s*,\s*|\s+)<of><year>", **parts), read
    yield _word(r"<in>\s+<month>", **parts), read


def _relative_days(lexicon: Lexicon) -> Iterator[_Rule]:
    for distance, words in lexicon.days.items():

        def read(_: re.Match[str], now: datetime, distance: int = distance) -> Span:
            return days_from(today_of(now) + timedelta(days=distance))

        yield _word(_any(_fold(words).split())), read


def _counted(lexicon: Lexicon) -> Iterator[_Rule]:
    """Two weeks ago, in the last two weeks."""
    numbers = _numbered(lexicon.numbers)
    units = {word: unit for unit, forms in lexicon.units.items() if unit in AROUND for word in _numbered(forms)}
    parts = {"count": rf"(?P<count>{_COUNT}|{_any(numbers)})", "unit": rf"(?P<unit>{_any(units)})"}

    def counted(match: re.Match[str]) -> tuple[int, str]:
        return numbers.get(match["count"]) or int(match["count"]), units[match["unit"]]

    def counted_back(match: re.Match[str], now: datetime) -> Span:
        return ago(now, *counted(match))

    def until_now(match: re.Match[str], now: datetime) -> Span:
        count, unit = counted(match)
        return ago(now, count, unit)[0], today_of(now) + timedelta(days=1)

    for form in lexicon.ago:
        words = [part if part == "*" else _any([_fold(part)]) for part in form.split()]
        yield _word(r"\s+".join(words).replace("*", r"<count>\s+<unit>"), **parts), counted_back
    yield _word(rf"{_any(_fold(lexicon.last).split())}\s+<count>\s+<unit>", **parts), until_now


def _sided(lexicon: Lexicon) -> Iterator[_Rule]:
    """Last week, this month, next Friday, last May, on Monday."""
    sides = dict.fromkeys(_fold(lexicon.last).split(), -1) | dict.fromkeys(_fold(lexicon.this).split(), 0)
    sides |= dict.fromkeys(_fold(lexicon.next).split(), 1)
    units = {word: unit for unit, forms in lexicon.units.items() for word in _numbered(forms.split(",")[0])}
    months, weekdays = _numbered(lexicon.months), _numbered(lexicon.weekdays)
    named = _any([*units, *months, *weekdays])

    def read(match: re.Match[str], now: datetime) -> Span | None:
        found = match.groupdict()
        side, name = sides[found["side"]], " ".join(found["name"].split())
        if name in months:
            return month_beside(now, side, months[name])
        if name in weekdays:
            return weekday_beside(now, side, weekdays[name] - 1)
        return beside(now, side, units[name.replace(" ", "_")])

    def on(match: re.Match[str], now: datetime) -> Span:
        return weekday_beside(now, -1, weekdays[match["name"]] - 1)

    side, name = rf"(?P<side>{_any(sides)})", rf"(?P<name>{named})"
    yield _word(rf"{side}\s+{name}"), read
    if lexicon.is_side_behind:
        yield _word(rf"{name}\s+{side}"), read
    before = rf"{_any(_fold(lexicon.on).split())}\s+" if lexicon.on else ""
    yield _word(rf"{before}(?P<name>{_any(weekdays)})"), on


# Chinese and Japanese

_HAN_NUMBERS: Final = {word: number for number, word in enumerate("一 二 三 四 五 六 七 八 九 十 十一 十二".split(), 1)}
_HAN_NUMBERS["两"] = _HAN_NUMBERS["兩"] = 2
_HAN_YEARS: Final = {"前年": -2, "去年": -1, "昨年": -1, "今年": 0, "明年": 1, "来年": 1}
_HAN_DAYS: Final = {
    **dict.fromkeys(("前天", "一昨日", "おととい"), -2),
    **dict.fromkeys(("昨天", "昨日", "昨晚", "昨夜", "きのう"), -1),
    **dict.fromkeys(("今天", "今日"), 0),
    **dict.fromkeys(("明天", "明日"), 1),
}
_HAN_SIDES: Final = {
    **dict.fromkeys(("上周", "上週", "上星期", "上个星期", "先週"), (-1, "week")),
    **dict.fromkeys(("这周", "本周", "本週", "今週"), (0, "week")),
    **dict.fromkeys(("下周", "下週", "来週"), (1, "week")),
    **dict.fromkeys(("上个月", "上月", "先月"), (-1, "month")),
    **dict.fromkeys(("这个月", "本月", "今月"), (0, "month")),
    **dict.fromkeys(("下个月", "下月", "来月"), (1, "month")),
}
_HAN_UNITS: Final = {
    **dict.fromkeys(("天", "日"), "day"),
    **dict.fromkeys(("周", "週", "週間", "星期", "个星期"), "week"),
    **dict.fromkeys(("个月", "個月", "ヶ月", "か月", "カ月"), "month"),
    "年": "year",
}


@cache
def _han() -> tuple[_Rule, ...]:
    number = rf"(?<!\d)(?:{_COUNT}|{_any(_HAN_NUMBERS)})"
    year = rf"(?:(?<!\d){_YEAR}\s*年|(?P<near>{_any(_HAN_YEARS)}))\s*の?\s*"
    month, day = rf"(?P<month>{number})\s*月", r"\s*(?P<day>[0-3]?\d)\s*[日号號]"
    whole = r"(?!\s*(?:以|之|前|後|后|まて|から|\d))"  # not "before 2023"; folded

    def numbered(text: str) -> int:
        return _HAN_NUMBERS.get(text) or int(text)

    def date(match: re.Match[str], now: datetime) -> Span:
        found = match.groupdict()
        near = found.get("near")
        said = found.get("year") if near is None else str(now.year + _HAN_YEARS[near])
        if "month" not in found:
            return year_of(now, int(said or 0))
        return date_of(now, said, numbered(found["month"]), found.get("day"))

    def counted_back(match: re.Match[str], now: datetime) -> Span:
        return ago(now, numbered(match["count"]), _HAN_UNITS[match["unit"]])

    def day_word(match: re.Match[str], now: datetime) -> Span:
        return days_from(today_of(now) + timedelta(days=_HAN_DAYS[match.group()]))

    def sided(match: re.Match[str], now: datetime) -> Span | None:
        return beside(now, *_HAN_SIDES[match.group()])

    relative = rf"(?P<count>{number})\s*(?P<unit>{_any(_HAN_UNITS)})\s*以?前"
    dates = (rf"(?:{year})?{month}{day}", rf"{year}{month}", year, month)
    others = ((relative, counted_back), (_any(_HAN_DAYS), day_word), (_any(_HAN_SIDES), sided))
    return (
        *((re.compile(pattern + whole), date) for pattern in dates),
        *((re.compile(pattern), read) for pattern, read in others),
    )
