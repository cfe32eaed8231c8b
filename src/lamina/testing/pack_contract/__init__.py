"""The contract of a pack store, by theme; `contract` puts it together."""

from pkgutil import iter_modules

import pytest

# Before any of them is imported, so that a failed assertion shows both sides.
pytest.register_assert_rewrite(*(module.name for module in iter_modules(__path__, f"{__name__}.")))
