"""How people say what is worth remembering about themselves, in six languages: rules as data.

A pattern stands at the beginning of a clause, and is about the speaker. What it must not be followed by
keeps out talk about the matter at hand ("I like that", "ich mag den Vorschlag").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["CLAUSE_START", "DOUBTFUL", "MADE_UP", "QUESTION", "RULES", "FactKind", "Rule"]


class FactKind(StrEnum):
    """What a fact is about; its tag."""

    NAME = "name"
    HOME = "home"
    WORK = "work"
    TASTE = "preference"
    BIRTHDAY = "birthday"
    TOLD = "remember"
    """The user asked in so many words for it to be remembered."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way of saying one kind of fact. `anywhere`: languages that put the verb last match inside a clause."""

    kind: FactKind
    pattern: re.Pattern[str]
    anywhere: bool = False


def _rule(kind: FactKind, pattern: str, *, anywhere: bool = False) -> Rule:
    return Rule(kind, re.compile(pattern, re.IGNORECASE), anywhere)


_EN_JOB: Final = (
    "accountant|actor|architect|artist|baker|carpenter|chef|cook|dentist|designer|developer|doctor|driver|"
    "electrician|engineer|farmer|firefighter|freelancer|gardener|journalist|lawyer|librarian|manager|mechanic|"
    "musician|nurse|painter|paramedic|pharmacist|photographer|physicist|pilot|plumber|professor|programmer|"
    "researcher|scientist|student|surgeon|teacher|therapist|translator|veterinarian|vet|writer"
)
_EN_THING: Final = (
    r"(?!(?:it|that|this|these|those|them|him|her|you|your|the|how|what|where|when|both|to (?:see|hear|know|think))\b)"
)
_EN_VERY: Final = r"(?:really |absolutely |also |always |just |simply |truly |genuinely |usually |generally )*"

_ENGLISH: Final = (
    _rule(FactKind.NAME, r"my (?:full |first |last |real )?name(?:'s| is) (?!not\b|in\b|on\b|missing\b|wrong\b)\w"),
    _rule(
        FactKind.NAME,
        r"(?:you can |please |just |everyone |people )*calls? me (?!back|later|when|at|on|tomorrow|if|a |an |the )\w+\W*$",
    ),
    _rule(FactKind.NAME, r"i go by \w"),
    _rule(
        FactKind.HOME,
        r"i(?:'m| am)? (?:currently |now |still )?(?:live|living|reside|based|located) (?:in|near|on|at|outside) \w",
    ),
    _rule(
        FactKind.HOME,
        r"(?:i(?:'ve| have)? |we(?:'ve| have)? )(?:just |recently )?moved to (?!the (?:next|new)|a new)\w",
    ),
    _rule(FactKind.HOME, r"i(?:'m| am) (?:originally )?from (?!the |there|here|a )\w"),
    _rule(FactKind.HOME, r"i grew up in \w"),
    _rule(FactKind.HOME, r"my (?:home )?address is \w"),
    _rule(FactKind.WORK, r"i work (?:as|at|for|in) (?!it\b|this\b|that\b|progress)\w"),
    _rule(FactKind.WORK, rf"i(?:'m| am) an? (?:[\w-]+ ){{0,3}}(?:{_EN_JOB})\b(?! (?:too|now\?))"),
    _rule(FactKind.WORK, r"i (?:teach|study) (?!it|this|that|the )\w"),
    _rule(FactKind.WORK, r"my (?:day )?job is \w"),
    _rule(
        FactKind.TASTE,
        rf"i {_EN_VERY}(?:love|like|enjoy|adore|prefer|hate|dislike|can't stand|cannot stand|detest) {_EN_THING}\w",
    ),
    _rule(FactKind.TASTE, rf"i (?:really )?(?:don't|do not) (?:really |much )?(?:like|eat|drink) {_EN_THING}\w"),
    _rule(FactKind.TASTE, r"i never (?:eat|drink|wear|use) (?!it|that|this)\w"),
    _rule(FactKind.TASTE, r"i(?:'m| am) (?:a )?(?:strict |lifelong )?(?:vegan|vegetarian|pescatarian|teetotal)"),
    _rule(FactKind.TASTE, r"i(?:'m| am) (?:very |severely |badly )?allergic to \w"),
    _rule(FactKind.TASTE, r"i(?:'m| am) (?:a )?(?:big |huge )?fan of (?!it|that|this|the idea)\w"),
    _rule(FactKind.TASTE, r"my favou?rite [\w ]{2,40} (?:is|are) (?!the (?:first|second|last))\w"),
    _rule(FactKind.BIRTHDAY, r"my birthday(?:'s| is) \w"),
    _rule(FactKind.BIRTHDAY, r"i was born (?:on|in) \w"),
    _rule(
        FactKind.TOLD,
        r"(?:please |also |and )*(?:remember|note|keep in mind|bear in mind|don't forget|do not forget)(?: for (?:later|next time|the future))?(?:,? that|:) \w",
    ),
    _rule(FactKind.TOLD, r"(?:please )?remember (?:i|my|we|our)\b"),
)

_DE_THING: Final = r"(?!(?:es|das|dies\w*|den|die|der|dein\w*|ihr\w*|euer|eure|dich|sie|ihn|beide\w*|wie|was|dass)\b)"
_DE_JOB: Final = (
    r"\w*(?:lehrer|ingenieur|arzt|ärztin|pfleger|krankenschwester|entwickler|programmierer|student|anwalt|anwältin|"
    r"koch|köchin|bäcker|tischler|schreiner|architekt|designer|journalist|übersetzer|buchhalter|gärtner|fahrer|"
    r"physiker|forscher|musiker|fotograf|mechaniker|elektriker|verkäufer|berater)(?:in)?"
)
_GERMAN: Final = (
    _rule(FactKind.NAME, r"(?:ich hei(?:ß|ss)e|mein (?:voller |ganzer )?name ist) (?!nicht)\w"),
    _rule(FactKind.NAME, r"(?:bitte |du kannst |sie können )*(?:nenn(?:e|t)?|nennen sie) mich (?!nicht|so|wie)\w"),
    _rule(FactKind.HOME, r"ich (?:wohne|lebe) (?:jetzt |derzeit |seit [\w ]{2,20} )?(?:in|im|auf|bei|an) \w"),
    _rule(FactKind.HOME, r"ich (?:komme|stamme) (?:ursprünglich )?aus (?!de[mr]\b)\w"),
    _rule(
        FactKind.HOME,
        r"(?:ich bin|wir sind) (?:gerade |kürzlich |vor kurzem |letzt\w+ \w+ )?nach [\w -]{2,40} (?:um)?gezogen",
    ),
    _rule(FactKind.WORK, r"ich arbeite (?:als|bei|für|in|im|an der|beim) \w"),
    _rule(FactKind.WORK, rf"ich bin (?:von beruf |gelernte?r? |selbstständige?r? )?{_DE_JOB}\b"),
    _rule(FactKind.WORK, r"ich (?:studiere|unterrichte) (?!das|es|dies)\w"),
    _rule(
        FactKind.TASTE,
        rf"ich (?:mag|liebe|hasse|bevorzuge|verabscheue) (?:sehr |besonders |am liebsten |vor allem )?{_DE_THING}\w",
    ),
    _rule(
        FactKind.TASTE, r"ich (?:esse|trinke|höre|lese|spiele|koche) (?:sehr |am )?(?:gerne?|liebsten|kein\w*|nie) \w"
    ),
    _rule(FactKind.TASTE, r"mein\w* lieblings[\w-]+ (?:ist|sind) \w"),
    _rule(
        FactKind.TASTE,
        r"ich bin (?:vegetarier|veganer|vegan|vegetarisch|allergisch gegen|kein fan von|ein (?:großer )?fan von)",
    ),
    _rule(
        FactKind.BIRTHDAY,
        r"mein geburtstag ist \w|ich habe am [\w. ]{2,30} geburtstag|ich (?:bin|wurde) (?:am|im) [\w. ]{2,30} geboren",
    ),
    _rule(
        FactKind.TOLD,
        r"(?:bitte )?(?:merk(?:e|en sie)? (?:dir|sich)|denk(?:e|en sie)? (?:bitte )?daran|vergiss nicht|vergessen sie nicht|notiere(?: dir)?)(?: bitte)?(?:,? dass|:) \w",
    ),
)

_FR_THING: Final = r"(?!(?:ça|cela|ceci|ce(?:t|tte|s)?|le|la|les|ton|ta|tes|votre|vos|beaucoup ça|bien ça|que|comment|quand)\b(?! \w+s\b))"
_FR_JOB: Final = (
    "professeure?|enseignante?|ingénieure?|médecin|infirmi(?:er|ère)|développeu(?:r|se)|étudiante?|avocate?|cuisini(?:er|ère)|"
    "boulang(?:er|ère)|architecte|journaliste|traduct(?:eur|rice)|comptable|jardini(?:er|ère)|photographe|"
    "musicien(?:ne)?|menuisi(?:er|ère)|graphiste|pharmacien(?:ne)?"
)
_FRENCH: Final = (
    _rule(
        FactKind.NAME,
        r"(?:je m'appelle|mon (?:nom|prénom) est) (?!pas)\w|(?:tu peux |vous pouvez )?(?:appelle|appelez|m'appeler)(?:-moi)? (?!quand|si|pas)\w+\W*$",
    ),
    _rule(FactKind.HOME, r"(?:j'habite|je vis|je réside) (?:maintenant |actuellement )?(?:à|a|en|au|aux|dans|près) \w"),
    _rule(
        FactKind.HOME, r"(?:je viens|je suis originaire) (?:de |d'|du )(?!faire|voir|finir|lire|me|te|le|la)[A-ZÀ-Ý]"
    ),
    _rule(FactKind.HOME, r"(?:j'ai|nous avons) (?:récemment )?(?:déménagé|emménagé) (?:à|en|au) \w"),
    _rule(FactKind.WORK, r"je (?:travaille|bosse) (?:comme|chez|pour|dans|en tant que|à|au) (?!ça|cela|ce )\w"),
    _rule(FactKind.WORK, rf"je suis (?:une? )?(?:{_FR_JOB})\b"),
    _rule(FactKind.WORK, r"j'(?:enseigne|étudie) (?!ça|cela|ce )\w"),
    _rule(
        FactKind.TASTE,
        rf"(?:j'(?:aime|adore)|je (?:préfère|déteste)) (?:bien |beaucoup |surtout |vraiment )?{_FR_THING}\w",
    ),
    _rule(
        FactKind.TASTE,
        r"(?:j'(?:aime|adore)|je (?:préfère|déteste)) (?:bien |beaucoup |surtout )?(?:le|la|les|l')(?: |)(?!idée|version|proposition|premi|second|deuxième|tien|vôtre)[\wé' -]{2,30}\W*$",
    ),
    _rule(
        FactKind.TASTE,
        r"je n'aime pas (?:du tout )?(?!ça|cela|ce(?:t|tte)? )\w|je ne (?:mange|bois) (?:pas|jamais) (?:de |d')\w",
    ),
    _rule(FactKind.TASTE, r"m(?:on|a|es) [\wéèà' -]{2,40} (?:préférée?s?|favorite?s?|favoris) (?:est|sont) \w"),
    _rule(FactKind.TASTE, r"je suis (?:allergique (?:à|au|aux)|végétarien|végan|végétalien)"),
    _rule(FactKind.BIRTHDAY, r"mon anniversaire (?:est|tombe) \w|je suis née? (?:le|en|à) \w"),
    _rule(
        FactKind.TOLD,
        r"(?:s'il te plaît,? |s'il vous plaît,? )?(?:souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|retiens|retenez|n'oublie pas|n'oubliez pas|note|notez)(?: bien)?(?: que| qu'|\s?:) ?\w",
    ),
)

_ES_THING: Final = r"(?!(?:eso|esto|est[aeo]s?|es[ae]s?|tu|tus|su idea|cómo|como|que|ese)\b)"
_ES_JOB: Final = (
    "profesora?|maestr[oa]|ingenier[oa]|médic[oa]|enfermer[oa]|desarrolladora?|programadora?|estudiante|abogad[oa]|"
    "cociner[oa]|panader[oa]|arquitect[oa]|periodista|traductora?|contable|jardiner[oa]|fotógraf[oa]|músic[oa]|"
    "carpinter[oa]|diseñadora?|farmacéutic[oa]"
)
_SPANISH: Final = (
    _rule(
        FactKind.NAME,
        r"(?:me llamo|mi nombre (?:completo )?es) (?!no)\w|(?:puedes |por favor,? )*(?:llám(?:a|e)me|llamarme) (?!cuando|si|a |por|mañana|luego)\w+\W*$",
    ),
    _rule(FactKind.HOME, r"(?:yo )?(?:vivo|resido) (?:ahora |actualmente )?(?:en|cerca) \w"),
    _rule(FactKind.HOME, r"(?:yo )?soy de (?!l[oa]s?\b|es[ae]|est[ae]|quienes)[A-ZÁ-Ú]"),
    _rule(FactKind.HOME, r"(?:me (?:mudé|he mudado)|nos (?:mudamos|hemos mudado)) (?:hace [\w ]{2,20} )?a \w"),
    _rule(FactKind.WORK, r"(?:yo )?trabajo (?:como|en|para|de) (?!eso|esto|est[ae])\w"),
    _rule(FactKind.WORK, rf"(?:yo )?soy (?:una? )?(?:{_ES_JOB})\b"),
    _rule(FactKind.WORK, r"(?:yo )?(?:estudio|enseño) (?!eso|esto)\w"),
    _rule(
        FactKind.TASTE,
        rf"(?:a mí )?(?:no )?me (?:gustan?|encantan?|fascinan?) (?:mucho |más |nada )?{_ES_THING}(?!la (?:idea|segunda|primera|versión|propuesta)|el (?:segundo|primer))\w",
    ),
    _rule(
        FactKind.TASTE,
        rf"(?:yo )?(?:prefiero|odio|detesto|adoro) {_ES_THING}(?!la (?:segunda|primera|versión)|el (?:segundo|primer))\w",
    ),
    _rule(FactKind.TASTE, r"(?:yo )?(?:no|nunca) (?:como|bebo|tomo) (?!eso|esto)\w"),
    _rule(FactKind.TASTE, r"mis? [\wáéíóúñ ]{2,40} (?:favorit|preferid)[oa]s? (?:es|son) \w"),
    _rule(FactKind.TASTE, r"(?:yo )?soy (?:muy )?(?:alérgic[oa] a|vegan[oa]|vegetarian[oa])"),
    _rule(FactKind.BIRTHDAY, r"mi cumpleaños es \w|(?:yo )?nací (?:el|en) \w|cumplo años el \w"),
    _rule(
        FactKind.TOLD,
        r"(?:por favor,? )?(?:recuerda|recuerde|acuérdate de|no olvides|no olvide|ten en cuenta|anota|apunta)(?: bien)?(?: que|:) \w",
    ),
)

_CHINESE: Final = (
    _rule(
        FactKind.NAME,
        r"我(?:的名字)?(?:叫|是叫)(?!你|他|她|它|什么)\w|我的(?:名字|姓名)是\w|(?:请|可以|就)?叫我(?!去|来|别|不|做|怎么|什么)\w{1,8}\W*$|我姓\w",
    ),
    _rule(
        FactKind.HOME,
        r"我(?:现在|目前|一直)?(?:住|居住)在(?!这|那|哪)\w|我(?:来自|是从)\w|我(?:刚|最近|已经|去年|今年|上个?月)*搬(?:到|去)了?(?!这|那)\w",
    ),
    _rule(
        FactKind.WORK,
        r"我(?:现在|目前)?在\w{1,20}(?:工作|上班|任职)|我(?:的工作|的职业)是\w|我是一?(?:名|个|位)\w{0,10}(?:师|员|生|护士|律师|记者|翻译|司机|演员|教授|经理)",
    ),
    _rule(
        FactKind.TASTE,
        r"我(?:个人)?(?:很|最|非常|特别|也|比较|真的|不太?|更|从小就|一直)*(?:喜欢|爱(?!你|他|她)|讨厌|偏爱|爱吃|爱喝)(?!这|那|你|他|她|它)\w",
    ),
    _rule(FactKind.TASTE, r"我(?:从来)?不(?:吃|喝)(?!这|那|了)\w|我对\w{1,12}过敏|我(?:是|吃)(?:素食者|素)"),
    _rule(FactKind.BIRTHDAY, r"我的?生日(?:是|在)\w|我(?:出生于|生于|出生在)\w"),
    _rule(
        FactKind.TOLD,
        r"(?:请|麻烦)?(?:你)?(?:帮我)?(?:记住|记得|记一下|别忘了|不要忘记)(?:了)?[，,:：]?\s*(?!吗|我们上次)\w",
    ),
)

_JA_ME: Final = r"(?:(?:私|僕|俺|わたし|わたくし|ぼく|自分)(?:は|が|の|も)、?)?"
_JAPANESE: Final = (
    _rule(FactKind.NAME, rf"^{_JA_ME}(?:名前|氏名|本名)は\w"),
    _rule(FactKind.NAME, rf"^{_JA_ME}[^\sはがを、]{{1,12}}と(?:申します|いいます|言います)", anywhere=True),
    _rule(
        FactKind.HOME,
        rf"^{_JA_ME}(?:今は?|現在は?|ずっと)?[^はが、]{{1,15}}に(?:住んでい(?:ます|る)|引っ越しました|引っ越した)",
    ),
    _rule(FactKind.HOME, rf"^{_JA_ME}[^はが、]{{1,12}}(?:の)?出身(?:です|だ)"),
    _rule(FactKind.WORK, rf"^{_JA_ME}[^はが、]{{1,20}}(?:で|に|として)(?:働いてい|勤めてい|勤務してい)(?:ます|る)"),
    _rule(
        FactKind.WORK,
        r"^(?:(?:私|僕|俺|わたし|ぼく)は、?)[^はが、]{0,15}(?:エンジニア|教師|先生|医師|看護師|学生|会社員|デザイナー|弁護士|料理人|研究者|記者|翻訳者)(?:です|だ)|^(?:私の)?(?:仕事|職業)は\w",
    ),
    _rule(
        FactKind.TASTE,
        rf"^{_JA_ME}(?!この|その|あの|これ|それ)[^は、]{{1,20}}が(?:とても|一番|本当に)?(?:大好き|好き|大嫌い|嫌い|苦手)(?:です|だ)",
    ),
    _rule(
        FactKind.TASTE,
        rf"^{_JA_ME}(?!この|その|あの|これ|それ)[^はが、]{{1,15}}(?:アレルギー(?:です|があります|だ)|を食べません|は飲みません)|^{_JA_ME}(?:ベジタリアン|ヴィーガン|菜食主義者)です",
    ),
    _rule(FactKind.BIRTHDAY, rf"^{_JA_ME}誕生日は\w|^{_JA_ME}[^はが、]{{2,20}}に生まれました"),
    _rule(
        FactKind.TOLD,
        r"(?:覚えておいて|覚えておいてください|忘れないで(?:ください)?|メモしておいて)(?:ください|ね)?[。!！]?\W*$",
        anywhere=True,
    ),
)

RULES: Final = (*_ENGLISH, *_GERMAN, *_FRENCH, *_SPANISH, *_CHINESE, *_JAPANESE)

_OPENINGS: Final = "|".join(
    (
        "hi|hello|hey|well|so|ok|okay|btw|by the way|fyi|actually|also|and|but|yes|no",
        "hallo|guten tag|übrigens|und|ja|nein",
        "bonjour|salut|au fait|et|oui",
        "hola|buenas|por cierto|y|sí",
        "你好|您好|对了|顺便说一下|另外|こんにちは|はじめまして|ちなみに|あと",
    )
)
CLAUSE_START: Final = re.compile(
    "|".join(
        (
            rf"^[\W_]*(?:(?:{_OPENINGS})(?: there| zusammen| à tous)?[\s,.!，。！、:-]+){{0,3}}",
            r"[,;:，；：、—–]\s*(?:(?:and|but|und|aber|et|mais|y|pero|而且|也|并且)\s*)?",
            r"\b(?:and|und|et|y)\s+",
        )
    ),
    re.IGNORECASE,
)
"""Where a clause may begin: the sentence, perhaps behind a greeting, a comma, or an "and"."""

DOUBTFUL: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # What is only supposed, wished, played or over.
        r"\b(?:if|suppose|supposing|imagine|pretend|assum(?:e|ing)|hypothetically|what if|let's say|say i|unless|wish)\b",
        r"\b(?:would|could|might|as if|as though|used to|when i was|back when|in my dream|for example|example|dreamt?)\b",
        r"\bno longer\b|\be\.g\.",
        r"\b(?:wenn|falls|angenommen|stell dir vor|hätte|wäre|würde|könnte|als ob|früher|damals|zum beispiel|z\.b\.|nicht mehr)\b",
        r"\b(?:si|imagine|imaginons|supposons|disons que|comme si|aurais|serais|aimerais|par exemple|avant,|ne \w+ plus|autrefois)\b",
        r"\b(?:si|imagina|imaginemos|supongamos|supón|digamos|como si|ojalá|gustaría|sería|por ejemplo|antes|ya no|cuando era)\b",
        r"如果|假如|假设|要是|万一|比如|例如|想象|以前|曾经|小时候|要不是|的话",
        r"もし|例えば|たとえば|としたら|とすれば|なら、|だったら|仮に|昔|以前|かもしれ|と思ったら|らしい|そうです$|だそう",
        # What somebody else said.
        r"\b(?:says?|said|saying|told|tells|claims?|claimed|asked|wrote|writes|according to|quote|lyrics?|song|poem)\b",
        r"\b(?:sagte?|sagt|erzählte?|meinte?|behauptet|schrieb|schreibt?|laut|zitat|lied|gedicht)\b",
        r"\b(?:dit|disait|raconte|écrit|écrivait|selon|citation|chanson|poème)\b",
        r"\b(?:dijo|dice|decía|contó|escribió|escribe|según|cita|canción|poema)\b",
        r"(?<!请)说[:：,，]|说(?:他|她|我)|告诉我|写道|据|歌词|他说|她说|问我",
        r"と(?:言って|いって|話して|書いて)(?:い|た)|と言った|によると|歌詞|と聞かれ",
    )
)
"""Any of these in a sentence, and nothing is taken from it."""

_TASKS: Final = "|".join(
    (
        r"role-?play|act as|you are (?:a|an|the|now)\b|pretend|translate|rewrite|proofread|paraphrase|summari[sz]e",
        "write (?:a|an|me|the|some)|draft|story|character|sentence|dialogue",
        "übersetze?|formuliere|fasse|korrigiere|geschichte|figur|satz|du bist ein|schreib",
        "traduis|traduisez|résume|corrige|histoire|personnage|phrase|tu es une?",
        "traduce|traduzca|resume|historia|personaje|frase|eres una?",
    )
)
MADE_UP: Final = re.compile(
    rf"\b(?:{_TASKS})\b"
    r"|翻译|故事|台词|角色|句子|写(?:一|个|首|篇)|润色|翻訳|訳して|物語|小説|台詞|文章|キャラクター|要約",
    re.IGNORECASE,
)
"""Any of these in a message, and what it says in the first person may be somebody else's part: nothing is taken."""

_ASKING: Final = "|".join(
    (
        "who|what|when|where|why|how|which|whose|do|does|did|can|could|will|would|should|shall|may|is|are|am|was|were",
        r"have|has|wer|was|wann|wo|warum|wieso|wie|welche\w*|kannst|können|könntest|soll|muss|darf",
        "qui|que|quand|où|pourquoi|comment|est-ce|peux-tu|pouvez-vous",
        "quién|qué|cuándo|dónde|por qué|cómo|cuál|puedes|podrías|debo",
    )
)
QUESTION: Final = re.compile(
    "|".join(
        (
            r"[?？]\s*[\"'”»)」]*\s*$",
            r"^[\W_]*¿",
            rf"^[\W_]*(?:{_ASKING})\b",
            r"(?:吗|呢|么)[。?？!！]*\s*$",
            r"(?:ですか|ますか|でしょうか|のか|かな|かね)[。?？]*\s*$",
            r"^(?:为什么|怎么|什么|谁|哪)",
        )
    ),
    re.IGNORECASE,
)
"""A sentence that asks."""
