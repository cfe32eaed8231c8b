import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.text import MAX_NAME_CHARS, check_name, clean, content_digest, is_blank, is_clean, snake_case
from lamina.errors import InvalidInput, InvalidType

ANY_TEXT = st.text(st.one_of(st.characters(), st.sampled_from("\x00\ud83d\ude00\ud800\udfff")), max_size=20)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("pay\x00roll", "pay\ufffdroll"),
        ("\ud83d", "\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("a\ud83d\ude00b", "a😀b"),
        ("\x01\x7f\u2028", "\x01\x7f\u2028"),
        ("", ""),
    ],
)
def test_clean_joins_pairs_and_replaces_what_cannot_be_kept(text, cleaned):
    assert clean(text) == cleaned


@given(ANY_TEXT)
def test_what_is_cleaned_is_clean_and_stays_so(text):
    cleaned = clean(text)
    assert is_clean(cleaned)
    assert clean(cleaned) == cleaned
    assert cleaned.encode().decode() == cleaned
    assert is_clean(text) == (cleaned == text)


@pytest.mark.parametrize("name", ["a", "a b", "é", "x" * MAX_NAME_CHARS, "👩‍👧", "a\nb", "' OR 1=1"])
def test_a_name_comes_back_as_it_is(name):
    assert check_name("owner", name) is name


@pytest.mark.parametrize(
    "name", ["", " ", "\n\t", "\u200b", "\ufeff \x01", "x" * (MAX_NAME_CHARS + 1), "a\x00", "\ud83d"]
)
def test_a_name_that_cannot_identify_is_refused_and_named(name):
    with pytest.raises(InvalidInput) as refusal:
        check_name("owner", name)
    assert refusal.value.field == "owner"


@pytest.mark.parametrize("name", [None, 1, b"a", ["a"]])
def test_a_name_is_text(name):
    with pytest.raises(InvalidType, match="owner: must be text"):
        check_name("owner", name)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Tea at  four", " Tea\nat four\t", True),
        ("café", "cafe\u0301", True),
        ("Tea", "tea", False),
        ("tea", "tea.", False),
        ("tea", "ｔｅａ", False),
    ],
)
def test_the_same_content_has_the_same_digest(one, other, same):
    assert (content_digest(one) == content_digest(other)) is same


@given(st.text(max_size=20))
def test_a_digest_does_not_depend_on_composition_or_white_space(text):
    assert content_digest(unicodedata.normalize("NFD", text)) == content_digest(f"  {text}\n")


@pytest.mark.parametrize(
    "text", ["", " \n", "\u200b\ufeff\u2060", "\u00a0\u3000\u2029", "\x00\x1f\x7f", "\u202e\u00ad"]
)
def test_what_shows_nothing_is_blank(text):
    assert is_blank(text)
    assert not is_blank(f"{text}.{text}")


@pytest.mark.parametrize("text", ["a", ".", "👩‍👧", "\ue000", "\U0001fadc", "\u0301"])
def test_what_a_font_may_draw_is_not_blank(text):
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("key", "spelled"), [("threadId", "thread_id"), ("thread_id", "thread_id"), ("goal", "goal"), ("URL", "url")]
)
def test_a_key_in_camel_case_is_spelled_as_our_fields_are(key, spelled):
    assert snake_case(key) == spelled
