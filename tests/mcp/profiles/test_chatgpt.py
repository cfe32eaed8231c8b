from __future__ import annotations

from lamina.mcp import Binding
from lamina.mcp.bound_memories import BoundMemories


async def test_search_and_fetch_have_the_shapes_that_chatgpt_expects(connected, kernel):
    memories = BoundMemories(kernel, Binding(owner="ann"))
    text = f"\n  Ann's   tea: {'very ' * 30}strong\nand with milk"
    id = await memories.add(text, metadata={"rating": 5, "by": "ann"}, id="a/b c%")
    async with connected(profile="chatgpt") as call:
        assert list(await call.tools()) == ["search", "fetch"]
        (match,) = (await call("search", query="tea"))["results"]
        assert match == {"id": id, "title": match["title"], "url": "memory://a%2Fb%20c%25"}
        assert match["title"].startswith("Ann's tea: very very")
        assert len(match["title"]) == 80
        fetched = await call("fetch", id=id)
    assert set(fetched) == {"id", "title", "text", "url", "metadata"}
    assert fetched["text"] == text
    assert fetched["metadata"]["rating"] == "5"
    assert fetched["metadata"]["by"] == "ann"
    assert {type(value) for value in fetched["metadata"].values()} == {str}


async def test_nothing_found_is_an_empty_list_and_an_unknown_id_is_told(connected):
    async with connected(profile="chatgpt") as call:
        assert await call("search", query="anything") == {"results": []}
        assert await call.refused("fetch", id="nope") == "No memory here has the id 'nope'."
