"""How pack memories fade over simulated years, what they take in each tier, and whether all of them come back.

    python benchmarks/packs.py [memories] [memories per tier]

Everything is in one SQLite file: the packs, the compressed originals, and the rows that search runs over. The
clock is driven. Texts are made up from a fixed seed; vectors come from the deterministic embedder for tests, for
what they take is the same in every tier that has one. Prints two tables in Markdown.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from lamina.adapters.sqlite import SqliteAdapter
from lamina.databases.sqlite import SqliteDatabase
from lamina.domain.pack import PackType
from lamina.domain.pack_decay import Decay, Tier
from lamina.evaluation.reductions import items_of
from lamina.packs.fading import DegradationReport
from lamina.packs.service import ContextPacks
from lamina.state.sqlite import SqlitePackStore
from lamina.testing import FrozenClock, HashingEmbedder

READ_AGAIN: Final = 0.01
"""Of all memories, how many are read again between two sweeps; archived ones are not among them."""

PAGE: Final = 500
OWNER: Final = "mira"
IDLE: Final = {
    "12 hours": timedelta(hours=12),
    "1 day": timedelta(days=1),
    "2 days": timedelta(days=2),
    "4 days": timedelta(days=4),
    "30 days": timedelta(days=30),
    "60 days": timedelta(days=60),
    "120 days": timedelta(days=120),
    "240 days": timedelta(days=240),
    "1 year": timedelta(days=365),
    "2 years": timedelta(days=730),
    "4 years": timedelta(days=1460),
    "8 years": timedelta(days=2920),
    "12 years": timedelta(days=4380),
}

PEOPLE: Final = "Ada Lind|Bruno Katz|Ceyda Aksoy|Dilan Marsh|Edith Varga|Farid Nouri|Greta Olsen|Hugo Prat".split("|")
PLACES: Final = "Izmir|Rotterdam|Lyon|Tartu|Porto|Gdansk|Leeds|Bergen|Malmo|Trieste".split("|")
THINGS: Final = "Northwind|Juniper|Meridian|Haldane|Orchard|Kestrel|Tamarind|Basalt".split("|")
MONTHS: Final = "January|February|March|April|May|June|July|August|September|October|November|December".split("|")
SAID: Final = (
    "{person} decided that the {thing} service moves to {place} by {date}, after the third outage in a row.",
    "The budget for {thing} is {money} euros, and whatever is left of it at the end goes back to the other team.",
    "On {date} the export of {thing} failed for {number} minutes because a certificate had run out over night.",
    "{person} prefers short mails without greetings and would rather not be called before lunch.",
    "A batch that is larger than {number} rows is refused by {thing}, so cut it before it is sent.",
    "The contract with {thing} runs until {date} and is renewed by itself unless somebody says otherwise in time.",
    "Ask {person} before anything in {place} is switched off: others depend on it who are not on any list.",
    "If the error rate goes above {number} percent, the whole rehearsal is put off until there is time again.",
)
FILLED: Final = (
    "Nobody was happy with the idea, but the alternative was thought to be too dear and too slow as well.",
    "It took a while until the reason was found, since all the signs pointed to something else at first.",
    "This has come up more than once, and each time it was solved in another way by other people.",
    "The old way still works and may be used as long as nobody needs the new columns in the report.",
    "What matters is that the order is kept, for the second step relies on what the first one leaves behind.",
    "There is a page about it in the handbook, which is out of date in parts but right about the essentials.",
    "Before that, everything has to be written down so that the ones who come after understand why it is so.",
    "It was agreed to look at it again when there is more to say, and to leave it alone until then.",
)


class World:
    """The packs, what fades them, and the file that all is in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FrozenClock()
        database = SqliteDatabase(path)
        self.store = SqlitePackStore(None, database=database)
        adapter = SqliteAdapter(None, database=database, table="lamina_packs")
        self.packs = ContextPacks(self.store, adapter, embedder=HashingEmbedder(), clock=self.clock)

    def rows(self, query: str) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(query).fetchall()


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory(prefix="lamina-packs-") as folder:
        world = World(Path(folder) / "lamina.db")
        await world.packs.initialize()
        try:
            yield world
        finally:
            await world.packs.close()


def made_up(chance: random.Random) -> str:
    """A note of one to eight sentences, about half of which name somebody or something."""
    sentences = []
    for _ in range(chance.randint(1, 8)):
        form = chance.choice(chance.choice((SAID, FILLED)))
        sentences.append(
            form.format(
                person=chance.choice(PEOPLE),
                place=chance.choice(PLACES),
                thing=chance.choice(THINGS),
                date=f"{chance.randint(1, 28)} {chance.choice(MONTHS)} {chance.randint(2019, 2027)}",
                money=f"{chance.randint(2, 90)},{chance.choice(('000', '500', '250'))}",
                number=chance.randint(2, 990),
            )
        )
    return " ".join(sentences)


async def filled(world: World, texts: Sequence[str]) -> dict[str, str]:
    """The texts in a pack of each type, evenly; by id."""
    originals = {f"m{number:06}": text for number, text in enumerate(texts)}
    ids = list(originals)
    for number, kind in enumerate(PackType):
        owner = OWNER if kind in {PackType.SESSION, PackType.USER} else None
        await world.packs.create(kind.value, kind, owner=owner)
        own = ids[number :: len(PackType)]
        for start in range(0, len(own), PAGE):
            items = [{"id": id, "content": originals[id]} for id in own[start : start + PAGE]]
            await world.packs.add_many(kind.value, items, owner=owner)
    return originals


async def years(world: World, originals: dict[str, str], chance: random.Random) -> list[str]:
    """A line of the table for each sweep."""
    began = world.clock.now
    lines = [line("now", world, DegradationReport(), 0.0)]
    for name, idle in IDLE.items():
        world.clock.now = began + idle
        start = time.perf_counter()
        report = await world.packs.degrade()
        lines.append(line(name, world, report, time.perf_counter() - start))
        live = [id for (id,) in world.rows("SELECT id FROM lamina_pack_memories WHERE tier <> 'archived' ORDER BY id")]
        for id in chance.sample(live, min(len(live), round(READ_AGAIN * len(originals)))):
            if (await world.packs.memory(id, owner=OWNER)).content != originals[id]:
                sys.exit(f"{id} did not come back as it was")
    return lines


def line(name: str, world: World, report: DegradationReport, seconds: float) -> str:
    counts = Counter(dict(world.rows("SELECT tier, count(*) FROM lamina_pack_memories GROUP BY tier")))
    ((text,),) = world.rows("SELECT coalesce(sum(length(CAST(content AS BLOB))), 0) FROM lamina_packs")
    moved = sum(report.moved.values())
    cells = [name, *(f"{counts[tier.value]:,}" for tier in Tier), f"{text / 1024:,.0f}", f"{moved:,}", f"{seconds:.1f}"]
    return row(cells)


async def restored(world: World, originals: dict[str, str]) -> tuple[int, int]:
    """How many come back byte for byte, and how many of them were archived."""
    exact = archived = 0
    tiers = dict(world.rows("SELECT id, tier FROM lamina_pack_memories"))
    for id, text in originals.items():
        if tiers[id] == Tier.ARCHIVED.value:
            await world.packs.restore(id, owner=OWNER)
            archived += 1
        memory = await world.packs.memory(id, owner=OWNER)
        exact += memory.content.encode() == text.encode() and memory.tier is Tier.FULL
    return exact, archived


async def tier_by_tier(texts: Sequence[str]) -> list[str]:
    """What the same memories take in each tier: a line of the table for each."""
    lines = []
    full: tuple[float, ...] = ()
    async with opened() as world:
        await world.packs.create("notes", "project", decay=Decay(timedelta(hours=1)))
        for start in range(0, len(texts), PAGE):
            await world.packs.add_many("notes", list(texts[start : start + PAGE]))
        for tier, hours in zip(Tier, (0, 1, 1, 2, 4), strict=True):
            world.clock.advance(timedelta(hours=hours))
            await world.packs.degrade()
            if world.rows("SELECT DISTINCT tier FROM lamina_pack_memories") != [(tier.value,)]:
                sys.exit(f"not all are in the tier {tier.value}")
            sizes = measured(world.path)
            full = full or sizes
            kept = share_of_items(world, texts)
            per_memory = [
                f"{size / len(texts):,.0f} ({size / most:.0%})" for size, most in zip(sizes, full, strict=True)
            ]
            lines.append(row([f"`{tier.value}`", *per_memory, kept]))
    return lines


def measured(path: Path) -> tuple[float, ...]:
    """Bytes of the rows' texts, of whole rows, of the index of words, and of the originals, in a file without gaps."""
    with (
        contextlib.closing(sqlite3.connect(path)) as source,
        contextlib.closing(sqlite3.connect(":memory:")) as copy,
    ):
        source.backup(copy)
        copy.execute("INSERT INTO lamina_packs_text(lamina_packs_text) VALUES ('optimize')")
        copy.commit()
        used = dict(copy.execute("SELECT name, sum(payload) FROM dbstat GROUP BY name"))
        ((text,),) = copy.execute("SELECT coalesce(sum(length(CAST(content AS BLOB))), 0) FROM lamina_packs")
    words = sum(size for name, size in used.items() if name.startswith("lamina_packs_text_"))
    return text, used["lamina_packs"], words, used["lamina_pack_originals"]


def share_of_items(world: World, texts: Sequence[str]) -> str:
    """Of the names, numbers and dates of the texts, what the rows still have."""
    left = dict(world.rows("SELECT substr(id, instr(id, ':') + 1), content FROM lamina_packs"))
    names = dict(world.rows("SELECT id, key FROM lamina_pack_memories ORDER BY key"))
    found = total = 0
    for id, text in zip(sorted(names, key=names.__getitem__), texts, strict=True):
        items = {item for _, item in items_of(text)}
        total += len(items)
        found += sum(item in left.get(id, "") for item in items)
    return f"{found / total:.0%}"


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


async def main(count: int, per_tier: int) -> None:
    chance = random.Random(7)
    texts = [made_up(chance) for _ in range(count)]
    async with opened() as world:
        originals = await filled(world, texts)
        print(row(["idle", *(f"`{tier.value}`" for tier in Tier), "KiB of text in rows", "moved", "seconds"]))
        print(row(["---"] * (len(Tier) + 4)))
        print("\n".join(await years(world, originals, chance)))
        exact, archived = await restored(world, originals)
    print(f"\nrestored byte for byte: {exact:,} of {count:,}, {archived:,} of them from the archive\n")
    print(row(["tier", "text", "row", "index of words", "original, compressed", "names, numbers, dates kept"]))
    print(row(["---"] * 6))
    print("\n".join(await tier_by_tier(texts[:per_tier])))


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    asyncio.run(main(*given, *(10_000, 2_000)[len(given) :]))
