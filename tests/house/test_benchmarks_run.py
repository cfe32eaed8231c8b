"""The benchmarks are one command each, and that command works. What they measure is not asserted."""

from __future__ import annotations

import json
import subprocess
import sys


def output_of(root, *command):
    result = subprocess.run(
        [sys.executable, *command], cwd=root, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_benchmark_of_adding_tells_the_time_at_each_number_of_messages(root, tmp_path):
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"Message {n} of the log."} for n in range(12)]
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "a", "messages": messages}), encoding="utf-8")
    out = output_of(root, "benchmarks/compaction.py", str(tmp_path), "2000", "10", "30")
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["memory", "10"],
        ["memory", "30"],
        ["thread", "10"],
        ["thread", "30"],
    ]


def test_the_benchmark_of_chunking_finds_every_offset_exact_and_no_fence_or_row_split(root):
    out = output_of(root, "benchmarks/chunking.py", "docs", "20000")
    rows = [line.split() for line in out.splitlines()[2:]]
    assert len(rows) == 9 * 4
    assert [row[-6:-2] for row in rows if "fixed" not in row] == [["0", "0", "0", "0"]] * 27


def test_the_benchmark_of_packs_gets_every_memory_back_and_every_tier_takes_less(root):
    out = output_of(root, "benchmarks/packs.py", "40", "20")
    assert "restored byte for byte: 40 of 40, " in out
    sizes = [int(line.split("|")[2].split()[0]) for line in out.splitlines()[-5:]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


def test_the_benchmark_of_postgres_finds_the_exact_nearest_of_a_few(root, postgres_database):
    out = output_of(root, "benchmarks/postgres.py", "1100", "3", postgres_database)
    assert "hybrid recall of the whole tenant" in out
    assert [line.split()[-1] for line in out.splitlines() if "recall@10" in line] == ["1.000"] * 4


def test_the_benchmark_of_agreement_compares_a_backend_with_the_exact_ten(root):
    out = output_of(root, "benchmarks/agreement.py", "--memories", "300", "--queries", "5", "memory", "sqlite")
    assert [line.split(" | ")[:3] for line in out.splitlines()[2:]] == [
        ["| memory", "native", "5"],
        ["| sqlite", "native", "5"],
    ]
    assert all(line.split(" | ")[3] == "1.0000" for line in out.splitlines()[2:])


def test_the_benchmark_of_the_server_finds_nothing_wrong_and_tells_the_times_of_each_kind(root):
    out = output_of(
        root, "benchmarks/server_load.py", "--sqlite", "--processes", "2", "--seconds", "3", "--clients", "3"
    )
    assert [line.split(" | ")[0] for line in out.splitlines()[2:6]] == ["| edit", "| read", "| recall", "| write"]
    assert out.splitlines()[-1].endswith("; wrong: 0")
