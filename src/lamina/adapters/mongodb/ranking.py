"""Pipelines by which the server ranks: by cosine over what a condition matches, and by words held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lamina.adapters.mongodb.documents import word_key
from lamina.domain.lexical import Term

__all__ = ["by_closeness", "by_words", "frequencies", "keys_of"]

Stage = dict[str, Any]

NATIVE_PRODUCT: Final = (8, 3)
"""The first version with an expression for the product of two vectors."""

_BY_SCORE: Final = {"score": -1, "id": 1}


def by_closeness(match: Stage, towards: Sequence[float], limit: int, version: Sequence[int]) -> list[Stage]:
    """The ids of the closest directions, by exact products.

    https://www.mongodb.com/docs/manual/reference/operator/aggregation/similarityDotProduct/
    """
    product: Stage
    if tuple(version[:2]) >= NATIVE_PRODUCT:
        product = {"$similarityDotProduct": ["$near", list(towards)]}
    else:  # written out, which is faster than mapping over pairs
        factors = [{"$multiply": [{"$arrayElemAt": ["$near", at]}, each]} for at, each in enumerate(towards)]
        product = {"$add": factors}
    of_this_length = {"$and": [match, {"dims": len(towards)}]}
    return [
        {"$match": of_this_length},
        {"$project": {"id": 1, "score": product}},
        {"$sort": _BY_SCORE},
        {"$limit": limit},
    ]


def by_words(match: Stage, terms: Sequence[Term], weights: Sequence[float], limit: int) -> list[Stage]:
    """The ids of those that hold the most of the terms by weight."""
    forms = [word_key(form) for term in terms for form in term.forms]
    parts = [
        {"$cond": [{"$or": [{"$in": [word_key(form), "$words"]} for form in term.forms]}, weight, 0]}
        for term, weight in zip(terms, weights, strict=True)
    ]
    return [
        {"$match": {"$and": [match, {"words": {"$in": forms}}]}},
        {"$project": {"id": 1, "score": {"$add": parts}}},
        {"$sort": _BY_SCORE},
        {"$limit": limit},
    ]


def frequencies(match: Stage, words: Sequence[str]) -> list[Stage]:
    """In how many documents each word stands."""
    return [
        {"$match": {"$and": [match, {"words": {"$in": list(words)}}]}},
        {"$project": {"held": {"$setIntersection": ["$words", list(words)]}}},
        {"$unwind": "$held"},
        {"$group": {"_id": "$held", "documents": {"$sum": 1}}},
    ]


def keys_of(words: Sequence[str]) -> dict[str, str]:
    """The words by what is indexed of them."""
    return {word_key(word): word for word in words}
