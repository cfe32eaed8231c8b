"""The answers are those that were seen from the reference tool, word for word."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.mcp.profiles.file_store import FileProblem, Path

HEAD = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items:\n4K\t{}"


@pytest.fixture
def files(connected):
    return lambda **options: connected(profile="files", **options)


A = "/memories/a.txt"
SHOWN = f"Here's the content of {A} with line numbers:"
EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
CREATED = "File created successfully at: {}"
SESSION = [
    ("view", {"path": "/memories"}, HEAD.format("/memories", "/memories")),
    ("create", {"path": A, "file_text": "one\ntwo\nthree\n"}, CREATED.format(A)),
    ("create", {"path": A, "file_text": "x"}, f"File {A} already exists"),
    ("create", {"path": "/memories/d/e/f/g", "file_text": "x" * 1500}, CREATED.format("/memories/d/e/f/g")),
    ("create", {"path": "/memories/.hid", "file_text": ""}, CREATED.format("/memories/.hid")),
    ("create", {"path": "/memories/empty", "file_text": ""}, CREATED.format("/memories/empty")),
    (
        "view",
        {"path": "/memories"},
        HEAD.format("/memories", "/memories")
        + f"\n14B\t{A}\n4K\t/memories/d/\n4K\t/memories/d/e/\n0B\t/memories/empty",
    ),
    (
        "view",
        {"path": "/memories/d/e/f"},
        HEAD.format("/memories/d/e/f", "/memories/d/e/f") + "\n1.5K\t/memories/d/e/f/g",
    ),
    ("view", {"path": A}, f"{SHOWN}\n     1\tone\n     2\ttwo\n     3\tthree\n     4\t"),
    ("view", {"path": A, "view_range": [2, 3]}, f"{SHOWN}\n     2\ttwo\n     3\tthree"),
    ("view", {"path": A, "view_range": [3, -1]}, f"{SHOWN}\n     3\tthree\n     4\t"),
    ("view", {"path": A, "view_range": [0, 1]}, f"{SHOWN}\n     1\tone"),
    ("view", {"path": "/memories/empty"}, "Here's the content of /memories/empty with line numbers:\n     1\t"),
    ("view", {"path": "/memories/nope"}, "The path /memories/nope does not exist. Please provide a valid path."),
    (
        "str_replace",
        {"path": A, "old_str": "two", "new_str": "2\n2b"},
        f"{EDITED}\n     1\tone\n     2\t2\n     3\t2b\n     4\tthree",
    ),
    (
        "str_replace",
        {"path": A, "old_str": "zzz", "new_str": "2"},
        f"No replacement was performed, old_str `zzz` did not appear verbatim in {A}.",
    ),
    (
        "str_replace",
        {"path": A, "old_str": "2", "new_str": "x"},
        "No replacement was performed. Multiple occurrences of old_str `2` in lines: 2, 3. Please ensure it is unique",
    ),
    (
        "str_replace",
        {"path": A, "old_str": "three\n", "new_str": ""},
        f"{EDITED}\n     2\t2\n     3\t2b\n     4\t",
    ),
    ("insert", {"path": A, "insert_line": 0, "insert_text": "top"}, f"The file {A} has been edited."),
    (
        "insert",
        {"path": A, "insert_line": 99, "insert_text": "x"},
        "Invalid `insert_line` parameter: 99. It should be within the range [0, 4].",
    ),
    ("insert", {"path": A, "insert_line": 4, "insert_text": "end\n"}, f"The file {A} has been edited."),
    (
        "view",
        {"path": A},
        f"{SHOWN}\n     1\ttop\n     2\tone\n     3\t2\n     4\t2b\n     5\tend\n     6\t",
    ),
    (
        "rename",
        {"old_path": A, "new_path": "/memories/empty"},
        "The destination /memories/empty already exists",
    ),
    ("rename", {"old_path": "/memories/zz", "new_path": "/memories/y"}, "The path /memories/zz does not exist"),
    (
        "rename",
        {"old_path": "/memories/d", "new_path": "/memories/q/d2"},
        "Successfully renamed /memories/d to /memories/q/d2",
    ),
    (
        "view",
        {"path": "/memories/q"},
        HEAD.format("/memories/q", "/memories/q") + "\n4K\t/memories/q/d2/\n4K\t/memories/q/d2/e/",
    ),
    ("rename", {"old_path": "/memories", "new_path": "/memories/x"}, "Cannot rename the /memories directory itself"),
    ("delete", {"path": "/memories"}, "Cannot delete the /memories directory itself"),
    ("delete", {"path": "/memories/zz"}, "The path /memories/zz does not exist"),
    ("delete", {"path": "/memories/q"}, "Successfully deleted /memories/q"),
    ("delete", {"path": A}, f"Successfully deleted {A}"),
    ("view", {"path": "/memories"}, HEAD.format("/memories", "/memories") + "\n0B\t/memories/empty"),
]


async def test_a_session_of_commands_is_answered_as_models_know_it(files):
    async with files() as call:
        for command, arguments, expected in SESSION:
            answer = await call.client.call_tool(command, arguments)
            assert answer.content[0].text == expected, (command, arguments)
            done = ("Here", "File created", "The memory file has", "The file", "Successfully")
            assert answer.is_error is not expected.startswith(done)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/etc/passwd", "Path must start with /memories, got: /etc/passwd"),
        ("/memoriesX/a", "Path must start with /memories"),
        ("memories/a", "Path must start with /memories"),
        ("/x/memories/a", "Path must start with /memories"),
        ("/memories/../etc", "Path /memories/../etc would escape /memories directory"),
        ("/memories/a/../../b", "would escape /memories directory"),
        ("/memories/./a", "would escape /memories directory"),
        ("/memories/a\\..\\b", "cannot be used"),
        ("/memories/a:b", "cannot be used"),
        ("/memories/a\x00b", "cannot be used"),
        ("/memories/a\nb", "cannot be used"),
        ("/memories/ a", "cannot be used"),
        ("/memories/" + "x" * 300, "cannot be used"),
        ("/memories/" + "x/" * 40, "cannot be used"),
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused(files, path, told):
    async with files() as call:
        for tool, arguments in (
            ("view", {"path": path}),
            ("create", {"path": path, "file_text": "x"}),
            ("delete", {"path": path}),
            ("rename", {"old_path": path, "new_path": "/memories/b"}),
        ):
            assert told in await call.refused(tool, **arguments)


@given(st.text(max_size=60))
def test_no_text_reads_as_a_path_outside(text):
    try:
        path = Path.read(f"/memories/{text}")
    except FileProblem:
        return
    assert Path.read(str(path)) == path
    assert not {"", ".", ".."} & set(path.parts)
    assert not any(character in part for part in path.parts for character in "/\\:\x00\n")


async def test_percent_signs_are_only_characters(files):
    async with files() as call:
        await call.said("create", path="/memories/%2e%2e/a", file_text="x")
        assert "/memories/%2e%2e/" in await call.said("view", path="/memories")


async def test_files_that_say_the_same_stay_two_and_one_is_found_by_its_text(files, connected):
    async with files() as call, connected() as ordinary:
        await call.said("create", path="/memories/a", file_text="same text")
        await call.said("create", path="/memories/b", file_text="same text")
        await call.said("delete", path="/memories/a")
        assert "same text" in await call.said("view", path="/memories/b")
        found = await ordinary("search_memories", query="same text")
        assert [each["memory"]["metadata"]["file"] for each in found["results"]] == [{"path": "/memories/b"}]


async def test_a_name_is_free_again_after_a_rename(files):
    async with files() as call:
        await call.said("create", path="/memories/a", file_text="first")
        await call.said("rename", old_path="/memories/a", new_path="/memories/b")
        await call.said("create", path="/memories/a", file_text="second")
        assert "first" in await call.said("view", path="/memories/b")
        assert "second" in await call.said("view", path="/memories/a")


async def test_a_file_has_nothing_below_it_and_a_folder_is_no_file(files):
    async with files() as call:
        await call.said("create", path="/memories/d/a", file_text="x")
        assert "is a file" in await call.refused("create", path="/memories/d/a/b", file_text="x")
        assert await call.refused("create", path="/memories/d", file_text="x") == "File /memories/d already exists"
        told = await call.refused("str_replace", path="/memories/d", old_str="a", new_str="b")
        assert told == "The path /memories/d is not a file."
        told = await call.refused("rename", old_path="/memories/d", new_path="/memories/d/e")
        assert told == "The path /memories/d cannot be moved into itself"


async def test_edits_at_once_lose_nothing_and_one_of_two_creators_is_told(files):
    async with files() as call:
        made = await asyncio.gather(
            *(call.client.call_tool("create", {"path": "/memories/a", "file_text": f"{n}\n"}) for n in range(5))
        )
        assert [each.is_error for each in made].count(False) == 1
        await asyncio.gather(
            *(call.said("insert", path="/memories/a", insert_line=0, insert_text=f"line {n}") for n in range(10))
        )
        shown = await call.said("view", path="/memories/a")
        assert all(f"line {n}\n" in shown for n in range(10))


async def test_files_of_two_owners_are_apart(files):
    async with files() as ann, files(owner="bob") as bob:
        await ann.said("create", path="/memories/a", file_text="secret")
        assert "does not exist" in await bob.refused("view", path="/memories/a")
        await bob.said("create", path="/memories/a", file_text="mine")
        await bob.said("delete", path="/memories/a")
        assert "secret" in await ann.said("view", path="/memories/a")


async def test_an_edit_is_kept_as_history(files, kernel):
    async with files() as call:
        await call.said("create", path="/memories/a", file_text="before")
        await call.said("str_replace", path="/memories/a", old_str="before", new_str="after")
    (entry,) = await kernel.memory_engine.query(owner="ann")
    assert [each.content for each in await kernel.memory_engine.history(entry.id)] == ["/memories/a:\nbefore"]
    assert entry.revision == 2
