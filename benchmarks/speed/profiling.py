"""Where a scoped hybrid recall spends its time."""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import threading
from pathlib import Path

from speed.dataset import Dataset
from speed.store_jobs import WARMED
from speed.systems import Lamina, with_vectors


async def profiled(data: Dataset, folder: Path) -> str:
    """The functions of all threads that many recalls went through, those that took longest first."""
    profiles: list[cProfile.Profile] = []

    def profile(*_: object) -> None:
        """Of this thread, from now on; on newer versions of Python the first one sees every thread."""
        if not profiles or sys.version_info < (3, 12):
            profiles.append(cProfile.Profile())
            profiles[-1].enable()

    system = Lamina()
    queries = data.queries()
    with_vectors(system, queries)
    threading.setprofile(profile)
    await system.open(folder)
    for query in queries[:WARMED]:
        await system.search(query, "hybrid", scoped=True)
    threading.setprofile(None)
    for each in profiles:
        each.clear()
    profile()
    for query in queries:
        await system.search(query, "hybrid", scoped=True)
    profiles[-1].disable()
    await system.close()
    text = io.StringIO()
    figures = pstats.Stats(*(each for each in profiles if each.getstats()), stream=text)
    figures.sort_stats("tottime").print_stats(40)
    return f"{len(queries)} scoped hybrid recalls among {data.count:,} memories\n{text.getvalue()}"
