"""Names of parametrised tests that are the same in every process: no addresses, no order of a set."""

import re


def stable(value: object) -> str:
    """The value as `repr` shows it, without what differs from process to process."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
