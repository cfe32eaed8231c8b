from __future__ import annotations

import pytest

from lamina.evaluation.dates import read_date


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00+00:00"),
        ("2023-07-17", "2023-07-17T00:00:00+00:00"),
        ("March-15-2024", "2024-03-15T00:00:00+00:00"),
        ("2026-10-29T09:00:00Z", "2026-10-29T09:00:00+00:00"),
        ("2026-10-29T09:00:00+02:00", "2026-10-29T09:00:00+02:00"),
        ("2024年04月01日", "2024-04-01T00:00:00+00:00"),
        ("Friday", None),
        ("2023-07", None),
        ("2023-02-30", None),
        ("about 2023-07-17", None),
        ("", None),
        (20230717, None),
        (None, None),
    ],
)
def test_a_date_is_read_from_a_text_that_is_nothing_else(text, iso):
    read = read_date(text)
    assert (None if read is None else read.isoformat()) == iso
