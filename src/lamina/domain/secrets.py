"""Finds what looks like a secret in a text: keys of well-known forms, and what is called a password.

A rule is either the exact form that an issuer gives its keys, or a name (`api_key =`, `my password is`) with a value
behind it that reads like no word. Nothing is guessed from randomness alone, since hashes, ids and pictures in base64
are as random as keys. Each rule is tried only on texts that hold one of its hints, so that plain text costs a few
microseconds, and each is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["SecretSpan", "SecretsPolicy", "find_secrets", "is_named_secret", "masked"]


class SecretsPolicy(StrEnum):
    """What is done about text that looks like a secret, before it is stored."""

    OFF = "off"
    """Nothing: it is stored as it came."""
    FLAG = "flag"
    """It is stored, and its kinds are noted beside it."""
    MASK = "mask"
    """A marker with its kind is stored in its place."""
    REFUSE = "refuse"
    """Nothing of the call is stored."""


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """Where in a text a secret stands, and of which kind it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """A form. Of a match the first group that took part is the secret, or all of it if there are no groups."""

    kind: str
    hints: tuple[str, ...]
    """Lower case; one of them is in every text that the pattern finds."""
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool] = bool
    is_long: bool = False
    """Whether a word of at least `_LONG_WORD` characters is in every text that the pattern finds."""
    is_whole: bool = False
    """Whether the secret is all of a match, though the pattern has groups."""


def _is_card(number: str) -> bool:
    """Whether the number has the beginning and the length of a large network's, and the right check digit."""
    digits = [int(each) for each in number if each.isdecimal()]
    if _NETWORKS.fullmatch("".join(map(str, digits))) is None:
        return False
    doubled = [sum(divmod(2 * each, 10)) for each in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_NETWORKS: Final = re.compile(
    r"(?:4\d|5[1-5]|2[2-7]|35)\d{14}|(?:6011|64[4-9]\d|65\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
)
_PLACEHOLDER: Final = re.compile(
    r"(?i)your|example|placeholder|change.?me|dummy|redacted|removed|\[secret|<|\.\.\.|…|x{4}|\*{3}|•{3}|^(?:[${%(/~]|\./|https?:)|\("
)
_REFERENCE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z]+(?:_[A-Za-z]+)+\d?")
"""A name in a program, such as `request.token` or `next_token2`."""
_LEAST: Final = 6
_STOPS: Final = ".,;:!?)"
"""What ends a sentence behind a value, and is not of it."""


def _is_chosen(value: str) -> bool:
    """Whether the value reads like something that was made up to be secret: no word, number, date or reference."""
    value = value.rstrip(_STOPS)
    if len(value) < _LEAST or _PLACEHOLDER.search(value) or _REFERENCE.fullmatch(value):
        return False
    letters = sum(character.isalpha() for character in value)
    if letters == 0 or letters == len(value):
        return False
    return any(character.isdigit() for character in value) or re.search(r"[^\w.'’/-]", value) is not None


def _has_digit(value: str) -> bool:
    return any(character.isdigit() for character in value)


def _is_password_of_url(value: str) -> bool:
    return not _PLACEHOLDER.search(value) and value.lower() not in {"password", "pass", "passwd", "pwd", "secret"}


_START: Final = r"(?<![A-Za-z0-9_-])"
_END: Final = r"(?![A-Za-z0-9_-])"
_WORD: Final = "[A-Za-z0-9_-]"


def _form(kind: str, hints: str, *forms: str) -> _Rule:
    """Keys of one issuer, which stand by themselves: `hints` and `forms` in the same order, or fewer hints."""
    return _Rule(kind, tuple(hints.lower().split()), re.compile(f"{_START}(?:{'|'.join(forms)}){_END}"), is_long=True)


_NAMES: Final = (
    r"pass(?:word|wd|phrase|code)|pwd|secret(?:[_-]?access)?(?:[_-]?key)?|(?:auth|access|refresh|bearer)?[_-]?token"
    r"|api[_ -]?key|access[_-]?key|account[_-]?key|private[_-]?key|client[_-]?secret|credentials?"
)
_VALUE: Final = r"""(?:"([^"\s]{6,})"|'([^'\s]{6,})'|`([^`\s]{6,})`|([^\s"'`,;(){}\[\]<>&]{8,}))"""
_SPOKEN: Final = "password|passphrase|passcode|passwort|kennwort|mot de passe|contraseña|senha|пароль"
_OF: Final = r"(?:\s+(?:of|for|to|on|at|von|für|zum|de|del|du|da|para|pour|от)\s+[^.:;\n]{1,60}?)?"
_IS: Final = r"\s*(?:\b(?:is|was|ist|war|est|es|é)\b\s{0,3}[:=：]?|[:=：—])\s*"

_RULES: Final = (
    _Rule(
        "private_key",
        ("private key",),
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[A-Za-z0-9+/=\s:,.\\]|-(?!----)){40,}(?:-----END [A-Z0-9 ]{1,40}-----)?"
        ),
    ),
    _form("private_key", "age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,60}"),
    _form("aws_access_key", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    _form("github_token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"gh[pousr]_\w{36,255}", r"github_pat_\w{60,255}"),
    _form(
        "gitlab_token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat-",
        rf"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-{_WORD}{{20,}}",
    ),
    _form("slack_token", "xox xapp-", r"xox[abeoprs](?:-[A-Za-z0-9]+){2,}", r"xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]+"),
    _form(
        "stripe_key",
        "sk_live_ rk_live_ sk_test_ rk_test_ whsec_",
        r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
        r"whsec_[A-Za-z0-9+/=]{24,}",
    ),
    _Rule("llm_api_key", ("sk-",), re.compile(rf"{_START}sk-{_WORD}{{32,}}"), _has_digit, is_long=True),
    _form(
        "llm_api_key",
        "gsk_ xai- pplx- r8_",
        r"gsk_[A-Za-z0-9]{40,}",
        r"xai-[A-Za-z0-9]{60,}",
        r"pplx-[A-Za-z0-9]{40,}",
        r"r8_[A-Za-z0-9]{37}",
    ),
    _form("huggingface_token", "hf_", r"hf_[A-Za-z0-9]{34}"),
    _form(
        "google_key", "aiza gocspx- ya29.", rf"AIza{_WORD}{{35}}", rf"GOCSPX-{_WORD}{{28}}", rf"ya29\.{_WORD}{{20,}}"
    ),
    _form("azure_key", "q~", r"[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    _form(
        "package_index_token",
        "npm_ pypi-age rubygems_ dckr_pat_",
        r"npm_[A-Za-z0-9]{36}",
        rf"pypi-AgE{_WORD}{{50,}}",
        r"rubygems_[a-f0-9]{48}",
        rf"dckr_pat_{_WORD}{{27,}}",
    ),
    _form(
        "mail_service_key",
        "sg. -us key-",
        rf"SG\.{_WORD}{{22}}\.{_WORD}{{43}}",
        r"[0-9a-f]{32}-us\d{1,2}",
        r"key-[0-9a-f]{32}",
    ),
    _form("twilio_key", "sk", r"SK[0-9a-f]{32}"),
    _form("telegram_token", ":aa", rf"\d{{8,10}}:AA{_WORD}{{33}}"),
    _form("discord_token", "m n o", rf"[MNO]{_WORD}{{23,27}}\.{_WORD}{{6}}\.{_WORD}{{27,40}}"),
    _Rule(
        "webhook",
        ("hooks.slack.com/", "/api/webhooks/"),
        re.compile(
            rf"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{{30,}}|(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/{_WORD}{{50,}})"
        ),
    ),
    _form("jwt", "eyj", rf"eyJ{_WORD}{{8,}}\.eyJ{_WORD}{{8,}}\.{_WORD}{{8,}}", rf"eyJ{_WORD}{{8,}}(?:\.{_WORD}*){{4}}"),
    _form(
        "service_token",
        "dop_v1_ doo_v1_ dor_v1_ hvs. hvb. hvr. atlasv1. dapi shpat_ shpca_ shppa_ shpss_ sq0atp- sq0csp- lin_api_ "
        "ntn_ pmak- sntrys_ sntryu_ glsa_ nrak- atatt3 lamina_",
        r"do[opr]_v1_[a-f0-9]{64}",
        rf"hv[sbr]\.{_WORD}{{24,}}",
        rf"\w{{14}}\.atlasv1\.{_WORD}{{60,}}",
        r"dapi[a-f0-9]{32}",
        r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
        rf"sq0(?:atp|csp)-{_WORD}{{22,43}}",
        r"lin_api_[A-Za-z0-9]{32,}",
        r"ntn_[A-Za-z0-9]{40,}",
        r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
        r"sntry[su]_[A-Za-z0-9+/=_-]{40,}",
        r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}",
        r"NRAK-[A-Z0-9]{27}",
        rf"lamina_{_WORD}{{43}}",
        r"ATATT3[A-Za-z0-9_=-]{60,}",
    ),
    _Rule("otp_seed", ("otpauth://",), re.compile(r"otpauth://\S{1,300}?[?&]secret=([A-Za-z2-7]{16,})")),
    _Rule(
        "password_in_url",
        ("://",),
        re.compile(
            r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/:@?#\"']{0,200}:([^\s/@\"'<>]{3,200})@[\w\[]"
        ),
        _is_password_of_url,
    ),
    _Rule(
        "signed_url",
        ("signature=", "sig="),
        re.compile(r"[?&](?:X-Amz-Signature|X-Goog-Signature|Signature|sig)=([A-Za-z0-9%+/=_-]{32,})"),
    ),
    _Rule(
        "bearer_token",
        ("bearer", "basic"),
        re.compile(r"(?i)(?:\bbearer|authorization:?\s*[\"']?\s*basic)\s+([A-Za-z0-9._~+/-]{16,}=*)"),
        _has_digit,
    ),
    _Rule(
        "password",
        ("pass", "pwd", "secret", "token", "key", "credential"),
        re.compile(rf"(?i)(?:{_NAMES})[\"'\]]{{0,2}}\s{{0,3}}(?:=>|:=|==?|:)\s{{0,3}}{_VALUE}"),
        _is_chosen,
    ),
    _Rule(
        "password",
        ("pass", "kennwort", "contraseña", "senha", "пароль"),
        re.compile(rf"(?i)(?<!\w)(?:{_SPOKEN}){_OF}{_IS}[\"'“„`«]?([^\s\"'”“`»,;]{{6,}})"),
        _is_chosen,
    ),
    _Rule(
        "password",
        ("密码", "密碼", "口令", "パスワード", "비밀번호"),
        re.compile(
            r"(?:密码|密碼|口令|パスワード|비밀번호)[^\n。]{0,20}?(?:是|为|為|は|은|는|[:：=])\s*[「『“\"']?([!-~]{6,})"
        ),
        _is_chosen,
    ),
    _Rule(
        "pin",
        ("pin",),
        re.compile(r"(?i)\bpin(?:[ -]?(?:code|number|nummer))?\s*(?:\bis\b|\bist\b|[:=])\s*(\d{4,8})(?![\w.,:/-]*\d)"),
    ),
)
_CARD: Final = _Rule(
    "card_number",
    (),
    re.compile(
        r"[2-6]\d{3}(?<![\w.,+/=-]\d{4})"
        r"(?:([ -]?)\d{4}\1\d{4}\1\d{4}|([ -]?)\d{6}\2\d{4,5})(?![\w+/=-])(?![.,]\d)"
    ),
    _is_card,
    is_whole=True,
)
"""The usual groups of digits of the large networks."""


def _by_hint(rules: Iterable[_Rule]) -> tuple[tuple[str, tuple[_Rule, ...]], ...]:
    rules = tuple(rules)
    hints = dict.fromkeys(hint for rule in rules for hint in rule.hints)
    return tuple((hint, tuple(rule for rule in rules if hint in rule.hints)) for hint in hints)


_LONG_WORD: Final = 20
"""The least length of what stands between two spaces where a key of a well-known form is: few words are as long."""
_KEYS: Final = _by_hint(rule for rule in _RULES if rule.is_long)
_OTHERS: Final = _by_hint(rule for rule in _RULES if not rule.is_long)
_SECRET_NAME: Final = re.compile(rf"(?i)(?:.*[_\-. ])?(?:{_NAMES}|pin|cvv|cvc)")


def find_secrets(text: str) -> list[SecretSpan]:
    """Where secrets stand in the text, in order and apart from each other; where two rules agree, the earlier one's."""
    found = [span for rule in _rules_for(text) for span in _matches(rule, text)]
    found.sort(key=lambda span: (span.start, -span.end))
    apart: list[SecretSpan] = []
    for span in found:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return apart


def masked(text: str, spans: list[SecretSpan]) -> str:
    """The text with a marker in the place of each secret: the same for all of a kind, and found to be no secret."""
    for span in reversed(spans):
        text = f"{text[: span.start]}[secret: {span.kind}]{text[span.end :]}"
    return text


def is_named_secret(name: str, value: str) -> bool:
    """Whether a field of this name with this value holds a secret by its name alone, as in `{"password": "…"}`."""
    return _SECRET_NAME.fullmatch(name) is not None and not any(map(str.isspace, value)) and _is_chosen(value)


def _rules_for(text: str) -> list[_Rule]:
    lowered = text.lower()
    has_long = max(map(len, lowered.split()), default=0) >= _LONG_WORD
    rules: dict[int, _Rule] = {}
    for hints in (_KEYS, _OTHERS) if has_long else (_OTHERS,):
        for hint, hinted in hints:
            if hint in lowered:
                rules.update((id(rule), rule) for rule in hinted)
    return [*rules.values(), _CARD]


def _matches(rule: _Rule, text: str) -> Iterator[SecretSpan]:
    for match in rule.pattern.finditer(text):
        group = 0 if rule.is_whole else match.lastindex or 0
        value = match[group]
        if rule.is_secret(value):
            start = match.start(group)
            length = len(value.rstrip(_STOPS)) if rule.is_secret is _is_chosen else len(value)
            yield SecretSpan(start, start + length, rule.kind)
