from __future__ import annotations

import pytest

from lamina.domain.lexical import query_terms
from lamina.memory.names import forms_in, is_called, names_in


def called(query, *names, known=()):
    terms = query_terms(query)
    return is_called(names, forms_in(terms), [term for term in terms if not {*term.forms} & {*known}])


@pytest.mark.parametrize(
    ("query", "name", "expected"),
    [
        ("how do we deploy to K8s today?", "k8s", True),
        ("when do we throw exceptions?", "exception", True),
        ("the request of the merge", "merge_request", True),
        ("the merge of two lists", "merge request", False),
        ("is it raining?", "IT", False),
        ("谁在北京工作", "北京", True),
        ("谁在上海工作", "北京", False),
        ("eror handling patterns", "error handling", True),  # a letter is missing
        ("typsecript config", "TypeScript", True),  # two are swapped
        ("typsecrtip config", "TypeScript", False),  # two slips
        ("mango pooling", "mongo", False),  # it begins otherwise
        ("our rest api", "test", False),
        ("a jet engine", "jest", False),  # too short to tell
        ("eror handlng", "error handling", False),  # two words are wrong
        ("components", "compose", False),  # their stems alone are alike
    ],
)
def test_a_query_calls_a_memory_by_all_words_of_a_name_or_all_but_one_slip(query, name, expected):
    assert called(query, "something else", name) is expected


def test_a_word_that_memories_hold_is_no_misspelling_of_another():
    assert called("how to reach her", "react")
    assert not called("how to reach her", "react", known=["reach"])


@pytest.mark.parametrize(
    ("metadata", "names"),
    [
        ({}, ()),
        ({"aliases": "k8s"}, ("k8s",)),
        ({"aliases": ["k8s", 8, None, "kube"]}, ("k8s", "kube")),
        ({"aliases": {"k8s": 1}}, ()),
        ({"aliases": []}, ()),
    ],
)
def test_names_are_a_text_or_a_list_of_texts(metadata, names):
    assert names_in(metadata) == names
