"""An error that nothing raises is a promise that nothing keeps."""

from __future__ import annotations

import ast
import inspect

from lamina import errors

CLASSES = {name: getattr(errors, name) for name in errors.__all__}


def constructed(trees):
    """Names that are called or raised, which is how an error comes about."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call | ast.Raise):
                target = node.func if isinstance(node, ast.Call) else node.exc
                if isinstance(target, ast.Name):
                    yield target.id
                elif isinstance(target, ast.Attribute):
                    yield target.attr


def test_every_error_class_or_a_kind_of_it_is_raised(modules):
    names = set(constructed(module.tree for module in modules if module.name != "lamina/errors.py"))
    dead = [
        name
        for name, cls in CLASSES.items()
        if not any(other in names and issubclass(kind, cls) for other, kind in CLASSES.items())
    ]
    assert dead == []


def test_every_error_class_of_the_tree_is_public_and_in_the_drawing():
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and not name.startswith("_")
    }
    assert defined == set(errors.__all__)
    assert [name for name in errors.__all__ if name not in (errors.__doc__ or "")] == []
