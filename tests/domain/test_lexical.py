import re
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.domain.lexical import (
    MAX_QUERY_CHARS,
    MAX_QUERY_TERMS,
    Term,
    count_terms,
    index_terms,
    query_terms,
    similarity,
    term_weights,
)


def share(content: str, query: str) -> float:
    """The share of the query's terms that the content holds."""
    terms = query_terms(query)
    held = set(index_terms(content))
    return sum(not held.isdisjoint(term.forms) for term in terms) / max(len(terms), 1)


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("the harbour-lamp bracket is cracked", "harbour-lamp"),
        ("ping @tomas_k about 50% refund #q4", "@tomas_k"),
        ("ping @tomas_k about 50% refund #q4", "50%"),
        ("ping @tomas_k about 50% refund #q4", "#q4"),
        ("the C++ build is red", "C++ OR"),
        ("don't stop", "don’t"),
        ("running shoes", "run"),
        ("universities", "university"),
        ("straße", "STRASSE"),
        ("STRASSE", "straße"),
        ("İstanbul", "istanbul"),
        ("ISTANBUL", "İstanbul"),
        ("ıstakoz", "ISTAKOZ"),
        ("crème brûlée", "creme BRULEE"),
        ("Ærø og Łódź", "aero lodz"),
        ("Nguyễn đến lúc 3h", unicodedata.normalize("NFD", "Nguyễn")),
        (unicodedata.normalize("NFD", "Nguyễn đến lúc 3h"), "Nguyễn"),
        ("Σίσυφος", "ΣΙΣΥΦΟΣ"),
        ("ЁЛКА", "елка"),
        ("ＡＢＣ１２３", "abc123"),
        ("𝔘𝔫𝔦", "uni"),
        ("٣٤٥ و ۳۴۵ और ३४५", "345"),
        ("น้ำแข็งอยู่ในตู้", "น้ำ"),
        ("ภาษาไทย", "ไทย"),
        ("ພາສາລາວ", "ລາວ"),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("မြန်မာစာ", "စာ"),
        ("किताब मेज़ पर है", "किताब"),
        ("வணக்கம் உலகம்", "வணக்கம்"),
        ("کتاب روی میز", "كتاب"),
        ("مُحَمَّد", "محمد"),
        ("شركة", "شرکه"),
        ("می\u200cرود", "میرود"),
        ("שָׁלוֹם", "שלום"),
        ("\u200fשלום\u200f", "שלום"),
        ("오늘 회의는 세시로 옮겼다", "회의"),
        ("오늘 회의는 세시로 옮겼다", "세시"),
        ("会议改到周五", "周五"),
        ("会议改到周五", "五"),
        ("路線図は灯台の隣の壁に貼った", "灯台の隣"),
        ("データベース", "ﾃﾞｰﾀ"),
        ("iPhone15を買った", "iphone15"),
        ("iPhone15を買った", "買"),
        ("人々", "々"),
        ("𠮷野家", "𠮷"),
        ("🎉 party", "🎉"),
        ("❤️", "❤"),
        ("👩‍👩‍👧 family", "👩‍👩‍👧"),
        ("x² + y²", "X2"),
        ("½ cup", "1/2"),
    ],
)
def test_a_word_is_found_in_any_script_and_spelling(content, query):
    assert share(content, query) == 1


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("น้ำแข็งอยู่ในตู้", "นำ"),
        ("किताब मेज़ पर है", "कताब"),
        ("किताब मेज़ पर है", "त"),
        ("йод", "иод"),
        ("会议改到周五", "五周"),
        ("𠮷野家", "吉"),
        ("が", "か"),
        ("harbour", "harb"),
        ("שלום", "שלם"),
        ("", "word"),
        ("...", "word"),
    ],
)
def test_another_word_is_not(content, query):
    assert share(content, query) == 0


@pytest.mark.parametrize(
    "query", ["", "   ", "***", '""', '"', "?!", "\x00", "\ud83d", "\u200b\ufeff", "\u0301", "---"]
)
def test_what_has_no_word_has_no_terms(query):
    assert query_terms(query) == []
    assert index_terms(query) == []
    assert similarity([], [], count_terms(["word"])) == 0


def test_hindi_and_thai_words_are_not_taken_apart_at_their_marks():
    assert index_terms("किताब मेज़") == ["किताब", "मेज़"]
    assert index_terms("น้ำ") == ["น้ำ"]
    assert index_terms("น้ำแข็ง")[:2] == ["น้ำ", "แ"]


def test_unspaced_scripts_give_characters_and_pairs_and_queries_pairs():
    assert index_terms("周五") == ["周", "五", "周五"]
    assert [term.forms for term in query_terms("改到周")] == [("改到",), ("到周",)]
    assert [term.forms for term in query_terms("五")] == [("五",)]
    assert index_terms("iPhone買") == ["iphon", "買"]


def test_a_text_is_stemmed_in_the_language_that_its_function_words_tell():
    assert index_terms("the boats were painted") == ["the", "boat", "were", "paint"]
    assert index_terms("die Notizen und Texte") == ["die", "notizen", "notiz", "und", "texte", "text"]
    assert query_terms("where are the boats") == [Term(("boats", "boat"))]
    assert {"texte", "text"} <= set(query_terms("Texte")[0].forms)


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Das Haus hat viele Bücher und Bilder", "Wo ist das Bild mit dem Buch?"),
        ("las canciones de la niña son muy alegres", "¿Cuál es la canción más alegre de las niñas?"),
        ("Les chevaux nationaux sont dans le pré", "cheval national"),
        ("de boeken van mijn zus liggen op de tafels", "Waar is het boek op de tafel?"),
        ("lamina is the name of it, and boats are its subject", "Was ist die Lamina?"),
        ("el nombre de la librería es Lamina", "what is Lamina called"),
        ("правительства государственных школ", "где государственная школа"),
        ("والمدارس الكبيرة في المدينة", "أين المدارس كبيرة"),
        ("लड़कियों की किताबें", "लड़की किताब"),
        ("οι γάτες των γειτόνων", "γάτα"),
    ],
)
def test_other_forms_of_a_word_are_found(content, query):
    assert share(content, query) >= 0.5
    assert share(query, content) > 0


def test_function_words_of_the_querys_language_leave_it():
    assert [term.forms[0] for term in query_terms("Wann ist die Sitzung mit dem Chef?")] == ["sitzung", "chef"]
    assert [term.forms[0] for term in query_terms("когда была встреча")] == ["встреча"]
    assert [term.forms[0] for term in query_terms("die hard")] == ["die", "hard"]
    assert [term.forms[0] for term in query_terms("where did she die")] == ["die"]


def test_stop_words_leave_a_query_unless_there_is_nothing_else():
    assert [term.forms[0] for term in query_terms("where is the lamp?")] == ["lamp"]
    assert [term.forms[0] for term in query_terms("to be or not to be")] == ["to", "be", "or", "not"]


def test_a_query_has_distinct_terms_and_not_too_many():
    assert [term.forms[0] for term in query_terms("lamp Lamp LAMP kite")] == ["lamp", "kite"]
    assert len(query_terms(" ".join(f"w{number}" for number in range(1_000)))) == MAX_QUERY_TERMS


def test_of_a_long_query_only_the_beginning_is_read():
    assert [term.forms[0] for term in query_terms("lamp" + " " * MAX_QUERY_CHARS + "kite")] == ["lamp"]
    assert [term.forms[0] for term in query_terms(" " * (MAX_QUERY_CHARS - 4) + "kite")] == ["kite"]


def test_weights_are_equal_where_documents_are_few_and_rarity_where_they_are_many():
    terms = [Term(("common",)), Term(("rare",)), Term(("running", "run"))]
    counts = {"common": 90, "rare": 1, "running": 1, "run": 40}
    assert term_weights(terms, 49, counts) == [1, 1, 1]
    common, rare, run = term_weights(terms, 100, counts)
    assert 0 < common < run < rare
    assert run == term_weights([Term(("x",))], 100, {"x": 40})[0]
    assert min(term_weights(terms, 60, counts)) > 0  # counts that are older than the number of documents


def test_similarity_is_the_weighted_share_and_less_in_a_long_text_unless_it_is_repeated():
    terms = [Term(("ant",)), Term(("bee", "cat"))]

    def value(*words: str) -> float:
        return similarity(terms, [1, 3], count_terms(words))

    assert value("dog") == 0
    assert value("cat") == pytest.approx(0.75, abs=0.01)
    assert value("ant", "bee") == pytest.approx(1, abs=0.01)
    assert value("cat", *["dog"] * 99) == pytest.approx(0.75 * 1.075 / 1.3)
    assert value("ant", *["dog"] * 99) < value("cat", *["dog"] * 999) < value("cat", "cat", *["dog"] * 999) < 0.75
    assert value("cat", "cat", "cat", *["bee"] * 3) == pytest.approx(0.75)
    assert value("cat", *["犬"] * 99) == value("cat")  # single characters stand in pairs as well
    assert similarity(terms, [0, 0], count_terms(["ant"])) == 0


MARKS = "e\u0301\u0308\u0345\u3099\u05bc\u1161\u11ab\ufe0f\u200d"
LETTERS = "aéßİıIſΣςσᾳΐẞŉǄน้ำกำເຳकिク゛ﾞが한ᄒ中々〇🎉❤كیـَשׁﷺ½①٣ -"
NASTY = st.lists(st.sampled_from(LETTERS + MARKS), max_size=12).map("".join)
TEXTS = st.one_of(st.text(max_size=30), NASTY)


@given(TEXTS)
def test_composed_and_decomposed_text_is_the_same(text):
    terms = index_terms(text)
    assert index_terms(unicodedata.normalize("NFC", text)) == terms
    assert index_terms(unicodedata.normalize("NFD", text)) == terms


@given(TEXTS)
def test_a_text_finds_itself_if_it_has_a_word(text):
    terms = query_terms(text)
    assert bool(terms) == bool(index_terms(text))
    assert share(text, text) == (1 if terms else 0)


@given(TEXTS)
def test_terms_are_plain_enough_to_be_split_at_spaces(text):
    for term in [*index_terms(text), *(form for each in query_terms(text) for form in each.forms)]:
        assert term
        assert not re.search(r"[\x00-\x2f\x3a-\x60\x7b-\x7f\s]", term)


@given(st.text(st.sampled_from("abcABCäÄßşŞçÇжЖяЯσΣώΏ "), max_size=20))
def test_case_does_not_count(text):
    assert [each.forms for each in query_terms(text)] == [each.forms for each in query_terms(text.upper())]


def test_a_word_of_a_million_letters_is_indexed_as_it_stands() -> None:
    letters = "running" * 150_000
    assert index_terms(f"the {letters} stands here")[1] == letters


def test_threads_that_index_at_the_same_time_get_the_words_that_one_alone_gets():
    stems = ["ration", "relat", "happi", "organ", "connect", "general", "oper", "nation", "condit", "hope"]
    ends = ["alization", "ions", "ies", "fulness", "ousness", "iveness", "ing", "edly", "izers", "ational"]
    texts = [f"{stem}{middle}{end}" for stem in stems for middle in ("", "al", "iz", "em") for end in ends]
    alone = [index_terms(text) for text in texts]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for number in range(20):
                turned = texts[number:] + texts[:number]
                assert list(threads.map(index_terms, turned)) == alone[number:] + alone[:number]
    finally:
        sys.setswitchinterval(interval)
