"""What is known of single languages: their stems, their function words, and how words show which they are in.

Cyrillic, Arabic, Devanagari and Greek letters have one stemmer each. Latin letters serve many
languages, so there the most frequent function words decide. All words are as `lamina.domain.lexical`
folds them: without case and, on Latin and Greek letters, without marks.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final

import Stemmer

__all__ = ["LATIN_LANGUAGES", "is_function_word", "languages_of", "stem_by_script", "stem_in", "stems_in", "stop_words"]

_ENGLISH: Final = (
    "a about all am an and any are as at be been but by can could did do does for from had has have he her "
    "him his how i if in into is it its just me my no not of on or our out she should so some than that the "
    "their them then there they this to up was we were what when where which who why will with would you your"
)
_FUNCTION_WORDS: Final = {
    language: frozenset(words.split())
    for language, words in {
        "english": _ENGLISH,
        "german": (
            "aber als am an auch auf aus bei bin bis das dass dem den der des die durch ein eine einem einen einer "
            "eines er es fur gibt hat habe haben ich ihr ihre im in ist kann man mein meine mich mir mit nach nicht "
            "noch nur oder sein seine sich sie sind so uber um und uns unser vom von vor wann war waren warum was wo "
            "welche welcher welches wenn wer werden wie wir wird wurde wurden zu zum zur"
        ),
        "spanish": (
            "al como con cual cuales cuando cuanta cuantas cuanto cuantos de del donde el ella en entre era es esta "
            "este esto fue fueron ha han hay la las le lo los mas me mi muy no para pero por porque que quien quienes "
            "se ser si sin sobre son su sus tiene un una y ya yo"
        ),
        "french": (
            "a au aux avec c ce ces cette comme d dans de des du elle elles en est et etait etaient ete il ils j je l "
            "la le les leur lui ma mais me mes mon n ne nous on ont ou par pas plus pour pourquoi qu quand que quel "
            "quelle quelles quels qui quoi s sa se ses son sont sur un une vous y"
        ),
        "italian": (
            "a ai al alla anche che chi come con cosa da dal dalla dei del della delle di dove e era gli ha hanno ho i "
            "il in io l la le lo ma mi mio nel nella non o per perche piu quale quali quando quanti quanto questa "
            "questo se si sono su sua suo sul sulla tra un una"
        ),
        "portuguese": (
            "a ao aos as com como da das de do dos e ela ele em era essa esse esta este eu foi foram ha isso ja mais "
            "mas me meu minha muito na nao nas no nos o onde os ou para pela pelo por porque qual quais quando quantos "
            "que quem se sem ser seu sua um uma voce"
        ),
        "dutch": (
            "aan als bij dat de deze die dit door een en er geen had heb heeft het hij hoe hoeveel ik in is je kan "
            "maar met mijn naar niet nog of om ook op over te tot uit van veel voor waar waarom was wat we welk welke "
            "werd wie wij worden zich zij zijn"
        ),
        "swedish": (
            "alla att av de den det dig din du eller en ett for fran har hon hur hade i inte jag kan man med men mig "
            "min mycket nar och om pa sa sig sin ska som till var vad vem vi vilka vilken vilket"
        ),
        "danish": (
            "af at blev de den der det dig du efter eller en er et for fra han har havde hun hvad hvem hvilke hvilken "
            "hvilket hvor i ikke jeg kan man med men mig min og om pa sig skal som til var vi"
        ),
        "norwegian": (
            "av ble de den der det du eller en er et etter for fra han har hun hva hvem hvilke hvilken hvilket hvor "
            "hvordan i ikke jeg kan man med meg men min og om pa seg skal som til var vi"
        ),
        "finnish": "ei ja ja joka jos kanssa kuin kun kuka mika mita missa mutta myos oli olen on ovat se sen tai tama",
        "turkish": "ama bir bu cok da daha de degil en gibi icin ile kadar kim ki mi mu nasil ne nerede o olan ve var",
        "hungarian": "a az egy es hogy is ki mi mit nem van volt de meg csak mint ez ezt vagy ha mar hol mikor",
        "romanian": "al ale am ca care ce cine cu cum de din este eu fi in la mai nu o pe pentru sa sau se si sunt un",
        "polish": "ale co czy dla do i jak jest kto na nie o od po sie ta tak to w z za ze",
        "vietnamese": "cac cho co cua da duoc khong la mot nhung toi trong va voi",
        "indonesian": "ada adalah apa dan dari dengan di ini itu ke pada saya siapa tidak untuk yang",
    }.items()
}

LATIN_LANGUAGES: Final = tuple(_FUNCTION_WORDS)
_LANGUAGES_OF: Final = {
    word: tuple(language for language in LATIN_LANGUAGES if word in _FUNCTION_WORDS[language])
    for words in _FUNCTION_WORDS.values()
    for word in words
}

_MORE_ENGLISH: Final = frozenset(
    (
        "s t d m ll re ve don doesn didn isn wasn won tell say said please also being because over "
        "such these those very"
    ).split()
)
_OTHER_SCRIPTS: Final = frozenset(
    word
    for words in (
        (
            "а без бы был была были было в во вы где да для до его ее если есть же за и из или им их к как какая "
            "какие какой какое когда кого кому кто ли между меня мне мой моя мы на над не него нее но о об он она "
            "они оно от по под при с свой своей со так то ты у уже чего чем что чтобы эта это этот я сколько "
            "почему каким какую каком каких"
        ),
        (
            "من فی علی الی عن ما ماذا لماذا هل کم متی این کیف او ان هو هی هذا هذه ای ایه ذلک تلک التی الذی مع کان "
            "کانت لم لا قد بین عند بعد قبل کل و ثم ایضا لقد"
        ),
        (
            "का की के को में से पर है हैं था थी थे ने और या एक यह वह ये वे इस उस इन उन जो कि भी नहीं क्या कौन किस "
            "किसने कितने कितना कितनी कब कहाँ कहां क्यों कैसे कौनसा हो गया गई गए कर रहा रहे लिए साथ अपने तक किया"
        ),
        ("και το τα τον την τησ των του οι ο η να με σε για από απο που πωσ τι ποιοσ ποια ποιο ειναι ηταν δεν"),
    )
    for word in words.split()
)
"""Of Russian, Arabic, Hindi and Greek."""

_STOP_WORDS: Final = {
    language: words | _OTHER_SCRIPTS | (_MORE_ENGLISH if language == "english" else frozenset())
    for language, words in _FUNCTION_WORDS.items()
}

_BY_FIRST_LETTER: Final = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0900", "\u097f", "hindi"),
)
_ARABIC: Final = ("\u0620", "\u06ff")
_ARABIC_PREFIXES: Final = re.compile("و?(?:ال|بال|کال|فال|لل)|و")
_FEWEST_LETTERS: Final = 2
_ARABIC_SUFFIXES: Final = ("ها", "ان", "ات", "ون", "ین", "یه", "ه", "ی")


def languages_of(words: Iterable[str]) -> list[str]:
    """The languages with Latin letters that the most function words tell of, English first; none without any."""
    counts: dict[str, int] = {}
    for word in filter(_LANGUAGES_OF.__contains__, words):  # few of a text's words are
        for language in _LANGUAGES_OF[word]:
            counts[language] = counts.get(language, 0) + 1
    most = max(counts.values(), default=0)
    return [language for language in LATIN_LANGUAGES if most and counts.get(language) == most]


def stop_words(words: Iterable[str]) -> frozenset[str]:
    """What tells nothing in a query of these words: of the language that two function words show, else of English."""
    words = list(words)
    first = next(iter(languages_of(words)), "english")
    is_shown = sum(word in _FUNCTION_WORDS[first] for word in words) > 1
    return _STOP_WORDS[first if is_shown else "english"]


def is_function_word(word: str) -> bool:
    """Whether it is a function word of some language with Latin letters."""
    return word in _LANGUAGES_OF


def stem_by_script(word: str) -> str:
    """The stem of a word whose script tells how to find it; others, Latin ones among them, as they are."""
    first = word[0]
    for start, end, language in _BY_FIRST_LETTER:
        if start <= first <= end:
            return stem_in(language, word)
    return _without_arabic_affixes(word) if _ARABIC[0] <= first <= _ARABIC[1] else word


def stem_in(language: str, word: str) -> str:
    """The stem of a word in a language; the word itself where the language has no stemmer."""
    if language in _NOT_STEMMED or len(word) > _LONGEST_STEMMED:
        return word
    stem: str = _stemmers.of(language).stemWord(word)
    return stem or word


def stems_in(language: str, words: Sequence[str]) -> list[str]:
    """`stem_in` of each of the words: many at once take a third of the time."""
    if language in _NOT_STEMMED:
        return list(words)
    if max(map(len, words), default=0) > _LONGEST_STEMMED:
        return [stem_in(language, word) for word in words]
    stems: list[str] = _stemmers.of(language).stemWords(words)
    return stems if all(stems) else [stem or word for stem, word in zip(stems, words, strict=True)]


_NOT_STEMMED: Final = frozenset({"polish", "vietnamese"})
_LONGEST_STEMMED: Final = 256
"""Letters: what is longer is no word, and is indexed as it is."""


class _Stemmers(threading.local):
    """Those of one thread: a stemmer keeps the word that it is at in itself, and backends index words in threads."""

    def __init__(self) -> None:
        self.by_language: dict[str, Any] = {}

    def of(self, language: str) -> Any:
        if language not in self.by_language:
            self.by_language[language] = Stemmer.Stemmer(language, maxCacheSize=0)
        return self.by_language[language]


_stemmers = _Stemmers()


def _without_arabic_affixes(word: str) -> str:
    """Light stemming: article, prepositions and conjunction before it, endings of number, gender and possession.

    Two letters stay, three after a lone conjunction (Larkey, Ballesteros and Connell 2002, "light10").
    """
    prefix = _ARABIC_PREFIXES.match(word)
    if prefix and len(word) - prefix.end() >= _FEWEST_LETTERS + (prefix.group() == "و"):
        word = word[prefix.end() :]
    for suffix in _ARABIC_SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _FEWEST_LETTERS:
            word = word[: -len(suffix)]
    return word
