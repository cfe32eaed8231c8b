"""A process that keeps a replica in step with its database; `lamina.adapters.turso.replica` starts it as a script.

The library `libsql` holds Python's global lock while it waits for the network, and knows no time-out. Here
nobody else needs that lock, and the one who waits can end the process.

Each line that comes in asks for one synchronisation, `{"path", "url", "token"}`; each line that goes out is the
answer to one: null, or what went wrong. The program ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Answer line by line. What the library prints goes nowhere."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import libsql

    connection: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        said = None
        try:
            if connection is None:
                connection = libsql.connect(asked["path"], sync_url=asked["url"], auth_token=asked["token"])
            connection.sync()
        except ValueError as error:  # the library knows no other error
            said = str(error)
        answers.write(json.dumps(said) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
