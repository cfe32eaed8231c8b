"""Scopes and filters as filter expressions; the words of users are bound, never part of the text.

A part of an expression is its text, or a bool where the answer is known without looking. A comparison
with what is missing, or of another kind, is false for DynamoDB too, so that NOT means what
`lamina.domain.conditions` says; numbers are compared by their order keys, text by its UTF-8 bytes,
which sort as code points do.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from lamina.adapters._shared.number_order import number_key
from lamina.adapters.dynamodb.items import name_in_metadata, size_of, typed
from lamina.adapters.dynamodb.keys import Item
from lamina.domain.filters import And, Compare, Expiry, Filter, MemoryFilter, Not, Operator, Or
from lamina.domain.instants import to_micros
from lamina.domain.memory import SHARED_LAYERS
from lamina.domain.scope import Scope
from lamina.errors import InvalidInput

__all__ = ["Expression", "gap_of"]

Part: TypeAlias = str | bool

MAX_LENGTH: Final = 4_096
MAX_OPERATORS: Final = 300
MAX_OPERANDS: Final = 100
"""DynamoDB's quotas for an expression, and for one IN."""

_FOR_METADATA: Final = 0.75
"""The share of an expression that conditions on metadata may take; scope, times and tags need the rest."""
_MAX_BOUND: Final = 1_000_000
"""Bytes of bound values: DynamoDB takes 2 MB with everything else of the request."""

_OPERATORS: Final = re.compile(r"\b(?:AND|OR|NOT|IN|contains|attribute_\w+)\b|[<>]=?|=")
_BOUND: Final = re.compile("[#:][0-9a-z]+")
_DIGITS: Final = string.digits + string.ascii_lowercase
_ORDERS: Final = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}


class Expression:
    """What of a partition's rows is asked for: a condition, and the names and values that it speaks of."""

    def __init__(self) -> None:
        self.condition: Part = True
        self.names: dict[str, str] = {}
        self.values: Item = {}
        self._bound: dict[tuple[str, Any], str] = {}

    def admit(self, scope: Scope, filter: MemoryFilter, *, of_others: bool = False) -> None:
        """Ask for what the scope and the filter admit; `of_others`: of the shared layers, and not the owner's own.

        Raises:
            InvalidInput: there is too much in the filter for one expression.
        """
        parts = [*self._scope(scope, of_others=of_others), *self._filter(filter)]
        if filter.where is not None:
            parts.append(self.where(filter.where))
        self.condition = _all([self.condition, *parts])
        if not self.fits(1):
            problem = f"makes an expression beyond the {MAX_LENGTH} characters or {MAX_OPERATORS} operators of DynamoDB"
            raise InvalidInput("filter", problem, "Name fewer tags, or ask more than once.")

    def same(self, attribute: str, value: Item) -> None:
        """Ask that the attribute is that."""
        self.condition = _all([self.condition, f"{self._name(attribute)}={self._value(value)}"])

    def where(self, where: Filter) -> Part:
        """A condition on metadata."""
        match where:
            case And():
                return _all([self.where(part) for part in where.parts])
            case Or():
                return _any([self.where(part) for part in where.parts])
            case Not():
                return _not(self.where(where.part))
            case Compare():
                return self._compare(where)

    @property
    def arguments(self) -> dict[str, Any]:
        """As arguments of a query; the condition must not be False."""
        if not isinstance(self.condition, str):
            return {}
        used = set(_BOUND.findall(self.condition))  # DynamoDB refuses what no part speaks of any more
        return {
            "FilterExpression": self.condition,
            "ExpressionAttributeNames": {short: name for short, name in self.names.items() if short in used},
            "ExpressionAttributeValues": {short: value for short, value in self.values.items() if short in used},
        }

    def fits(self, share: float) -> bool:
        """Whether the condition takes no more than this share of what one expression may have."""
        text = self.condition if isinstance(self.condition, str) else ""
        return (
            len(text) <= share * MAX_LENGTH
            and len(_OPERATORS.findall(text)) <= share * MAX_OPERATORS
            and size_of(self.values) <= _MAX_BOUND
        )

    def _scope(self, scope: Scope, *, of_others: bool) -> list[Part]:
        parts: list[Part] = []
        if scope.owner is not None:
            mine = f"{self._name('owner')}={self._value({'S': scope.owner})}"
            parts.append(_not(mine) if of_others else mine)
        if of_others:
            parts.append(self._in(self._name("layer"), [{"S": each.value} for each in sorted(SHARED_LAYERS)]))
        if scope.namespace is not None:
            parts.append(f"{self._name('namespace')}={self._value({'S': scope.namespace})}")
        return parts

    def _filter(self, filter: MemoryFilter) -> list[Part]:
        parts: list[Part] = []
        if filter.expiry is not Expiry.ANY:
            gone = f"{self._name('expires')}<={self._value(_instant(filter.now))}"
            parts.append(gone if filter.expiry is Expiry.EXPIRED else _not(gone))
        if filter.current:
            parts.append(_not(f"{self._name('holds')}<={self._value(_instant(filter.now))}"))
        if filter.layers is not None:
            parts.append(self._in(self._name("layer"), [{"S": each.value} for each in sorted(filter.layers)]))
        tags = [f"contains({self._name('tags')},{self._value({'S': tag})})" for tag in filter.tags]
        any_tag = [f"contains({self._name('tags')},{self._value({'S': tag})})" for tag in filter.tags_any]
        parts += [*tags, _any(any_tag) if any_tag else True]
        for name in ("relevance", "confidence"):
            least = getattr(filter, f"min_{name}")
            if least is not None:
                parts.append(f"{self._name(name)}>={self._value({'B': number_key(float(least))})}")
        for name in ("created", "updated"):
            before = getattr(filter, f"{name}_before")
            if before is not None:
                parts.append(f"{self._name(name)}<{self._value(_instant(before))}")
        if filter.has_embedding is not None:
            parts.append(f"{self._name('embedded')}={self._value({'BOOL': filter.has_embedding})}")
        return parts

    def _compare(self, compare: Compare) -> Part:
        path = ".".join(self._name(each) for each in ("metadata", *map(name_in_metadata, compare.path)))
        exists = f"attribute_exists({path})"
        match compare.operator:
            case Operator.EXISTS:
                return exists if compare.operand else f"attribute_not_exists({path})"
            case Operator.EQ:
                return self._in(path, [typed(compare.operand)])
            case Operator.NE:
                return _all([exists, _not(self._in(path, [typed(compare.operand)]))])
            case Operator.IN:
                return self._in(path, typed(list(_listed(compare.operand)))["L"])
            case Operator.NOT_IN:
                return _all([exists, _not(self._in(path, typed(list(_listed(compare.operand)))["L"]))])
            case Operator.CONTAINS:
                return self._contains(path, compare.operand)
            case _:
                return f"{path}{_ORDERS[compare.operator]}{self._value(typed(compare.operand))}"

    def _in(self, path: str, values: Sequence[Item]) -> Part:
        names = list(dict.fromkeys(self._value(value) for value in values))
        chunks = [names[start : start + MAX_OPERANDS] for start in range(0, len(names), MAX_OPERANDS)]
        parts: list[Part] = [
            f"{path}={chunk[0]}" if len(chunk) == 1 else f"{path} IN ({','.join(chunk)})" for chunk in chunks
        ]
        return _any(parts)

    def _contains(self, path: str, operand: Any) -> Part:
        value = typed(operand)
        held = f"contains({path},{self._value(value)})"
        if operand == "" and isinstance(operand, str):  # every text has it as a part
            is_text = f"attribute_type({path},{self._value({'S': 'S'})})"
            return _any([is_text, _all([f"attribute_type({path},{self._value({'S': 'L'})})", held])])
        if "B" in value:  # or the key of a number could be found as a part of another one's
            return _all([f"attribute_type({path},{self._value({'S': 'L'})})", held])
        return held

    def _name(self, attribute: str) -> str:
        for short, name in self.names.items():
            if name == attribute:
                return short
        short = f"#{_short(len(self.names))}"
        self.names[short] = attribute
        return short

    def _value(self, value: Item) -> str:
        [kind_and_value] = value.items()
        if kind_and_value not in self._bound:
            short = self._bound[kind_and_value] = f":{_short(len(self._bound))}"
            self.values[short] = value
        return self._bound[kind_and_value]


def gap_of(where: Filter) -> str | None:
    """Why this condition does not go into an expression, or None if it does."""
    expression = Expression()
    expression.condition = expression.where(where)
    if expression.fits(_FOR_METADATA):
        return None
    return (
        f"It does not fit into a filter expression of DynamoDB, which may have {MAX_LENGTH} characters and "
        f"{MAX_OPERATORS} operators; some 600 values to be `in` fit, or 64 other comparisons."
    )


def _all(parts: Iterable[Part]) -> Part:
    return _joined(" AND ", parts, neutral=True)


def _any(parts: Iterable[Part]) -> Part:
    return _joined(" OR ", parts, neutral=False)


def _joined(word: str, parts: Iterable[Part], *, neutral: bool) -> Part:
    """The parts joined, in parentheses if there are several: DynamoDB refuses more of them than it needs."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif part is not neutral:
            return part
    if not texts:
        return neutral
    return f"({word.join(texts)})" if len(texts) > 1 else texts[0]


def _not(part: Part) -> Part:
    if isinstance(part, bool):
        return not part
    return part.removeprefix("NOT ") if part.startswith("NOT ") else f"NOT {part}"


def _listed(operand: Any) -> tuple[Any, ...]:
    return operand if isinstance(operand, tuple) else (operand,)


def _instant(instant: Any) -> Item:
    return {"N": str(to_micros(instant))}


def _short(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
        if not number:
            return digits
