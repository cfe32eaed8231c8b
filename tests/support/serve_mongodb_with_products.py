"""Runs SecantusDB as a MongoDB 8.3 that multiplies vectors itself, which SecantusDB 0.7 does not.

https://www.mongodb.com/docs/manual/reference/operator/aggregation/similarityDotProduct/
Written out as a sum of products, each search over ten thousand vectors takes it a minute.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from secantus import cli, commands, expressions


def similarity_dot_product(operands: Any, context: Any) -> float | None:
    """The product of a field and a list of numbers of one length, in 64 bits; null where the field is."""
    field, other = operands  # the second is a list of numbers, which evaluate to themselves
    one = expressions._eval(field, context)
    if one is None:
        return None
    if len(one) != len(other):
        raise expressions.ExpressionError("the vectors are of different lengths")
    return float(np.asarray(one, dtype=np.float64) @ np.asarray(other, dtype=np.float64))


expressions._OPS["$similarityDotProduct"] = similarity_dot_product
commands.SERVER_VERSION, commands.SERVER_VERSION_ARRAY = "8.3.0", [8, 3, 0, 0]
raise SystemExit(cli.main())
