from __future__ import annotations

import asyncio
import contextlib
import threading
from array import array
from collections.abc import Sequence

import anyio
import pytest

from lamina.domain.memory import Vector
from lamina.errors import ConfigError, InvalidInput, ProviderError, ProviderUnavailable
from lamina.providers.resilience import (
    BatchingEmbedder,
    CachingEmbedder,
    CircuitBreakingEmbedder,
    EmbeddingCache,
    TimeLimitedEmbedder,
    resilient,
)


class Recording:
    """Embeds by length; a queue of failures comes first."""

    def __init__(self, provider: str = "recording", model: str = "m") -> None:
        self.provider = provider
        self.model = model
        self.calls: list[list[str]] = []
        self.failures: list[BaseException | None] = []
        self.closed = 0

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.calls.append(list(texts))
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return [array("f", [len(text), 1.0]) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        return (await self.embed_documents([text]))[0]

    async def close(self) -> None:
        self.closed += 1


class Never(Recording):
    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.arrived.set()
        await asyncio.Event().wait()
        raise AssertionError


def down() -> ProviderUnavailable:
    return ProviderUnavailable("recording", "down")


# Cache ------------------------------------------------------------------------------------


async def test_a_text_is_embedded_once_within_a_call_and_between_calls() -> None:
    inner = Recording()
    embedder = CachingEmbedder(inner)
    first = await embedder.embed_documents(["a", "bb", "a"])
    second = await embedder.embed_documents(["bb", "ccc"])
    assert inner.calls == [["a", "bb"], ["ccc"]]
    assert [list(v) for v in first] == [[1.0, 1.0], [2.0, 1.0], [1.0, 1.0]]
    assert [list(v) for v in second] == [[2.0, 1.0], [3.0, 1.0]]


async def test_documents_queries_providers_and_models_are_cached_apart() -> None:
    cache = EmbeddingCache()
    inners = [Recording(), Recording(model="other"), Recording(provider="other"), Recording("recordin", "gm")]
    for inner in inners:
        embedder = CachingEmbedder(inner, cache)
        for _ in range(2):
            await embedder.embed_documents(["same"])
            await embedder.embed_query("same")
        assert inner.calls == [["same"], ["same"]]


async def test_what_a_caller_does_to_a_vector_does_not_reach_the_cache() -> None:
    embedder = CachingEmbedder(Recording())
    for _ in range(3):
        [vector], query = await embedder.embed_documents(["abc"]), await embedder.embed_query("abc")
        assert list(vector) == list(query) == [3.0, 1.0]
        assert isinstance(vector, array)
        assert isinstance(query, array)
        vector[0] = query[0] = 99.0


async def test_a_text_given_twice_gets_two_vectors_that_are_the_callers_own() -> None:
    first, second = await CachingEmbedder(Recording()).embed_documents(["abc", "abc"])
    assert first == second
    assert first is not second


async def test_the_cache_keeps_its_bound_and_drops_the_least_recently_used() -> None:
    inner = Recording()
    cache = EmbeddingCache(max_bytes=3 * (8 + 250))
    embedder = CachingEmbedder(inner, cache)
    await embedder.embed_documents(["1", "22", "333"])
    await embedder.embed_documents(["1"])
    await embedder.embed_documents(["4444"])  # drops "22"
    assert len(cache) == 3
    assert cache.size == 3 * (8 + 250)
    inner.calls.clear()
    await embedder.embed_documents(["1", "333", "4444"])
    assert inner.calls == []
    await embedder.embed_documents(["22"])
    assert inner.calls == [["22"]]


def test_a_vector_larger_than_the_cache_is_not_kept() -> None:
    cache = EmbeddingCache(max_bytes=10)
    cache.put(b"k", [1.0] * 100)
    assert (len(cache), cache.size, cache.get(b"k")) == (0, 0, None)


def test_the_cache_adds_up_when_many_threads_use_it() -> None:
    cache = EmbeddingCache(max_bytes=40 * (16 + 250))

    def work(offset: int) -> None:
        for number in range(2_000):
            key = str((number * 7 + offset) % 97).encode()
            found = cache.get(key)
            assert found is None or list(found) == [float(key)] * 4
            cache.put(key, [float(key)] * 4)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 40
    assert cache.size == 40 * (16 + 250)


async def test_a_failure_is_not_cached() -> None:
    inner = Recording()
    inner.failures = [down()]
    embedder = CachingEmbedder(inner)
    with pytest.raises(ProviderUnavailable):
        await embedder.embed_query("a")
    assert list(await embedder.embed_query("a")) == [1.0, 1.0]


@pytest.mark.parametrize(
    "wrong", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], [1.0], [1.0, 2.0, 3.0]], ids=str
)
async def test_a_vector_as_an_embedder_in_trouble_gives_it_is_handed_on_and_not_kept(wrong: list[float]) -> None:
    class Troubled(Recording):
        async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            return [wrong if text == "b" and not self.calls[1:] else each for text, each in await self._each(texts)]

        async def _each(self, texts: Sequence[str]) -> list[tuple[str, Vector]]:
            return list(zip(texts, await super().embed_documents(texts), strict=True))

    inner = Troubled()
    embedder = CachingEmbedder(inner)
    first = [list(each) for each in await embedder.embed_documents(["a", "b"])]
    assert repr(first) == repr([[1.0, 1.0], wrong])
    assert [list(each) for each in await embedder.embed_documents(["a", "b"])] == [[1.0, 1.0], [1.0, 1.0]]
    assert inner.calls == [["a", "b"], ["b"]]


async def test_a_vector_too_few_is_refused_and_not_put_with_another_text() -> None:
    class TooFew(Recording):
        async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            return (await super().embed_documents(texts))[1:]

    cache = EmbeddingCache()
    with pytest.raises(ProviderError, match="1 vectors for 2 texts"):
        await CachingEmbedder(TooFew(), cache).embed_documents(["a", "b"])
    assert len(cache) == 0


# Batches ----------------------------------------------------------------------------------


async def test_documents_go_on_in_batches_and_come_back_in_order() -> None:
    inner = Recording()
    vectors = await BatchingEmbedder(inner, max_items=2).embed_documents(["a", "bb", "ccc"])
    assert inner.calls == [["a", "bb"], ["ccc"]]
    assert [v[0] for v in vectors] == [1.0, 2.0, 3.0]


# Time limit -------------------------------------------------------------------------------


async def test_a_call_that_takes_too_long_is_unavailable() -> None:
    embedder = TimeLimitedEmbedder(Never(), seconds=0.01)
    with pytest.raises(ProviderUnavailable, match=r"0\.01 s"):
        await embedder.embed_query("a")
    with pytest.raises(ProviderUnavailable):
        await embedder.embed_documents(["a"])


async def test_cancellation_passes_through_every_wrapper_and_counts_as_no_failure() -> None:
    inner = Never()
    circuit = CircuitBreakingEmbedder(TimeLimitedEmbedder(BatchingEmbedder(inner)), failures=1)
    for _ in range(2):
        task = asyncio.create_task(CachingEmbedder(circuit).embed_documents(["a"]))
        await inner.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        inner.arrived.clear()


# Circuit ----------------------------------------------------------------------------------


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def open_circuit(inner: Recording, clock: Clock) -> CircuitBreakingEmbedder:
    inner.failures = [down(), down(), down()]
    embedder = CircuitBreakingEmbedder(inner, failures=3, cool_down=30, monotonic=clock)
    for _ in range(3):
        with pytest.raises(ProviderUnavailable, match="down"):
            await embedder.embed_query("a")
    inner.calls.clear()
    return embedder


async def test_after_three_failures_in_a_row_calls_fail_at_once_for_the_cool_down() -> None:
    inner, clock = Recording(), Clock()
    embedder = await open_circuit(inner, clock)
    clock.now += 29.9
    with pytest.raises(ProviderUnavailable, match="3 times in a row"):
        await embedder.embed_documents(["a"])
    assert inner.calls == []


async def test_a_good_trial_closes_the_circuit() -> None:
    inner, clock = Recording(), Clock()
    embedder = await open_circuit(inner, clock)
    clock.now += 30
    await embedder.embed_query("trial")
    inner.failures = [down(), down()]
    for _ in range(2):
        with pytest.raises(ProviderUnavailable, match="down"):
            await embedder.embed_query("a")
    await embedder.embed_query("still let through")
    assert inner.calls[-1] == ["still let through"]


async def test_a_bad_trial_starts_the_cool_down_anew() -> None:
    inner, clock = Recording(), Clock()
    embedder = await open_circuit(inner, clock)
    clock.now += 30
    inner.failures = [down()]
    with pytest.raises(ProviderUnavailable, match="down"):
        await embedder.embed_query("trial")
    clock.now += 29
    with pytest.raises(ProviderUnavailable, match="in a row"):
        await embedder.embed_query("a")
    assert inner.calls == [["trial"]]


async def test_only_one_call_is_the_trial_while_the_others_fail_at_once() -> None:
    inner, clock = Recording(), Clock()
    embedder = await open_circuit(inner, clock)
    clock.now += 31
    arrived, release = asyncio.Event(), asyncio.Event()

    async def slow(texts: Sequence[str]) -> list[Vector]:
        inner.calls.append(list(texts))
        arrived.set()
        await release.wait()
        return [array("f", [1.0])]

    inner.embed_documents = slow  # type: ignore[method-assign]
    trial = asyncio.create_task(embedder.embed_query("trial"))
    await arrived.wait()
    with pytest.raises(ProviderUnavailable):
        await embedder.embed_query("other")
    release.set()
    assert list(await trial) == [1.0]
    await embedder.embed_query("other")
    assert inner.calls == [["trial"], ["other"]]


async def test_a_cancelled_trial_leaves_the_next_call_to_try() -> None:
    inner, clock = Recording(), Clock()
    embedder = await open_circuit(inner, clock)
    clock.now += 31
    inner.failures = [asyncio.CancelledError()]
    with pytest.raises(asyncio.CancelledError):
        await embedder.embed_query("trial")
    await embedder.embed_query("next")
    assert inner.calls == [["trial"], ["next"]]


async def test_failures_that_are_not_in_a_row_and_refusals_do_not_open_the_circuit() -> None:
    inner = Recording()
    refused = ProviderError("recording", "it answered 400")
    inner.failures = [down(), down(), None, down(), down(), refused, refused, refused, refused]
    embedder = CircuitBreakingEmbedder(inner, failures=3)
    for _ in range(9):
        with contextlib.suppress(ProviderError):
            await embedder.embed_query("a")
    assert len(inner.calls) == 9
    await embedder.embed_query("a")


async def test_input_that_the_embedder_refuses_does_not_close_an_open_circuit_by_itself() -> None:
    inner, clock = Recording(), Clock()
    embedder = await open_circuit(inner, clock)
    clock.now += 31
    inner.failures = [InvalidInput("texts", "are blank", "Give text.")]
    with pytest.raises(InvalidInput):
        await embedder.embed_query(" ")
    inner.failures = [down()]
    with pytest.raises(ProviderUnavailable, match="down"):
        await embedder.embed_query("trial")


# The usual composition --------------------------------------------------------------------


async def test_a_query_that_is_cached_needs_no_embedder_and_one_that_is_not_fails_fast_when_it_is_down() -> None:
    inner = Recording()
    embedder = resilient(inner)
    known = await embedder.embed_query("known")
    inner.failures = [down(), down(), down(), down()]
    for _ in range(5):
        assert await embedder.embed_query("known") == known
        with pytest.raises(ProviderUnavailable):
            await embedder.embed_query("new")
    assert len(inner.calls) == 1 + 3


async def test_batches_that_were_done_are_not_embedded_again_after_a_later_one_failed() -> None:
    inner = Recording()
    inner.failures = [None, down()]
    embedder, texts = resilient(inner), [str(number) for number in range(300)]
    with pytest.raises(ProviderUnavailable):
        await embedder.embed_documents(texts)
    assert len(await embedder.embed_documents(texts)) == 300
    assert [len(call) for call in inner.calls] == [256, 44, 44]


async def test_queries_have_a_shorter_time_limit_than_documents() -> None:
    with pytest.raises(ProviderUnavailable, match=r"0\.01 s"):
        await resilient(Never(), query_seconds=0.01).embed_query("a")
    with pytest.raises(ProviderUnavailable, match=r"0\.02 s"):
        await resilient(Never(), seconds=0.02, seconds_per_text=0).embed_documents(["a"])


async def test_the_time_limit_of_documents_grows_with_the_texts_of_the_batch() -> None:
    embedder = TimeLimitedEmbedder(Never(), seconds=0.01, seconds_per_text=0.005)
    for texts, limit in ((["a"], r"0\.015 s"), (["a", "b", "c", "d"], r"0\.03 s")):
        with pytest.raises(ProviderUnavailable, match=limit):
            await embedder.embed_documents(texts)


async def test_by_default_one_text_has_little_longer_than_a_query_and_a_full_batch_a_minute_and_a_half() -> None:
    limits = []

    class Watched(Recording):
        async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            limits.append(anyio.current_effective_deadline() - anyio.current_time())
            return await super().embed_documents(texts)

    embedder = resilient(Watched())
    await embedder.embed_documents(["one"])
    await embedder.embed_documents([str(number) for number in range(256)])
    assert [round(limit) for limit in limits] == [5, 95]


# Common -----------------------------------------------------------------------------------


async def test_wrappers_show_the_fingerprint_of_what_they_wrap_and_close_it() -> None:
    inner = Recording("p", "m")
    for wrap in (CachingEmbedder, BatchingEmbedder, TimeLimitedEmbedder, CircuitBreakingEmbedder):
        wrapped = wrap(inner)
        assert (wrapped.provider, wrapped.model) == ("p", "m")
        await wrapped.close()
    assert inner.closed == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: EmbeddingCache(0),
        lambda: BatchingEmbedder(Recording(), max_items=0),
        lambda: BatchingEmbedder(Recording(), max_tokens=0),
        lambda: TimeLimitedEmbedder(Recording(), seconds=0),
        lambda: TimeLimitedEmbedder(Recording(), seconds_per_text=-1),
        lambda: CircuitBreakingEmbedder(Recording(), failures=0),
        lambda: CircuitBreakingEmbedder(Recording(), cool_down=-1),
    ],
)
def test_a_limit_that_would_let_nothing_through_is_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()
