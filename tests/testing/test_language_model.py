import pytest

from lamina.errors import ProviderError, ProviderUnavailable
from lamina.ports.language_model import ChatMessage, ChatRole, Usage
from lamina.testing import EchoModel

HELLO = [
    ChatMessage(ChatRole.SYSTEM, "be kind"),
    ChatMessage(ChatRole.USER, "hello there"),
    ChatMessage(ChatRole.ASSISTANT, "well"),
]


async def test_it_says_the_users_last_words_and_keeps_what_it_was_told():
    model = EchoModel()
    completion = await model.complete(HELLO)
    assert (completion.text, completion.data, completion.usage) == ("hello there", None, Usage(5, 2))
    assert (await model.complete([])).text == ""
    assert model.calls == [tuple(HELLO), ()]


async def test_replies_come_first_in_their_order():
    model = EchoModel(["one", {"two": 2}, ProviderUnavailable("EchoModel", "is away")])
    assert (await model.complete(HELLO)).text == "one"
    completion = await model.complete(HELLO, schema={"type": "object"})
    assert (completion.text, completion.data) == ('{"two": 2}', {"two": 2})
    with pytest.raises(ProviderUnavailable):
        await model.complete(HELLO)
    assert (await model.complete(HELLO)).text == "hello there"


async def test_text_is_no_object_of_a_schema():
    with pytest.raises(ProviderError, match="not an object"):
        await EchoModel(["text"]).complete(HELLO, schema={"type": "object"})


async def test_a_stream_is_the_completion_piece_by_piece():
    pieces = [piece async for piece in EchoModel(["a b\nc  d"]).stream(HELLO)]
    assert len(pieces) > 1
    assert "".join(pieces) == "a b\nc  d"
    assert [piece async for piece in EchoModel(["a b c"]).stream(HELLO, max_tokens=2)] == ["a ", "b"]


async def test_it_stops_at_the_greatest_number_of_tokens():
    assert (await EchoModel(["a b c"]).complete(HELLO, max_tokens=2)).text == "a b"
    assert (await EchoModel(["a b c"]).complete(HELLO, max_tokens=3)).text == "a b c"


async def test_it_says_who_it_is_and_closes():
    model = EchoModel()
    assert (model.provider, model.model) == ("testing", "echo")
    await model.close()
