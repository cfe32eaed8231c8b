from __future__ import annotations

import subprocess
import sys


def test_without_the_sdk_the_extra_is_named():
    code = "import sys; sys.modules['mcp'] = None; import lamina; import lamina.mcp"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("The MCP server needs an extra: pip install 'lamina[mcp]'")


def test_the_kernel_does_not_load_the_sdk():
    code = "import sys; import lamina.kernel, lamina.cli; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
