from __future__ import annotations

import json
import os

import pytest

from lamina.errors import Conflict, InvalidInput
from lamina.mcp.installing import CLIENTS, Entry, files, install, uninstall

ENTRY = Entry("/bin/lamina", ("mcp",))
CURSOR = CLIENTS["cursor"]
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")


def others(folder):
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_each_client_is_told_once_and_forgets_again(tmp_path, client):
    file = tmp_path / "deep" / "settings"
    first = install(client, file, "lamina", ENTRY)
    assert (first.changed, first.backup, file.read_text()) == (True, None, first.text)
    assert files.shown(client, "lamina", ENTRY) == first.text
    again = install(client, file, "lamina", ENTRY)
    assert (again.changed, again.backup, others(file.parent)) == (False, None, ["settings"])
    gone = uninstall(client, file, "lamina")
    assert (gone.changed, gone.backup.read_text()) == (True, first.text)
    assert "lamina" not in file.read_text()
    assert not uninstall(client, file, "lamina").changed


@pytest.mark.parametrize("name", CLIENTS)
def test_each_client_is_told_in_its_own_shape(name):
    client = CLIENTS[name]
    told = files.shown(client, "lamina", ENTRY)
    if client.is_toml:
        assert told == '[mcp_servers.lamina]\ncommand = "/bin/lamina"\nargs = ["mcp"]\n'
        return
    entry = {"command": "/bin/lamina", "args": ["mcp"]}
    if name in {"claude-code", "vscode"}:
        entry = {"type": "stdio", **entry}
    assert json.loads(told) == {"servers" if name == "vscode" else "mcpServers": {"lamina": entry}}


@POSIX
def test_a_copy_is_left_beside_and_modes_are_kept(tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text('{"secret": 1}')
    file.chmod(0o640)
    first = install(CURSOR, file, "lamina", ENTRY)
    assert first.backup == tmp_path / "mcp.json.lamina-backup"
    assert first.backup.read_text() == '{"secret": 1}'
    second = install(CURSOR, file, "other", ENTRY)
    assert second.backup == tmp_path / "mcp.json.lamina-backup1"
    assert first.backup.read_text() == '{"secret": 1}'
    assert {each.stat().st_mode & 0o777 for each in (file, first.backup, second.backup)} == {0o640}
    assert install(CURSOR, tmp_path / "new.json", "lamina", ENTRY).file.stat().st_mode & 0o777 == 0o600


def test_a_dry_run_changes_nothing(tmp_path):
    file = tmp_path / "mcp.json"
    change = install(CURSOR, file, "lamina", ENTRY, dry_run=True)
    assert change.changed
    assert others(tmp_path) == []
    file.write_text("{}")
    install(CURSOR, file, "lamina", ENTRY, dry_run=True)
    assert (others(tmp_path), file.read_text()) == (["mcp.json"], "{}")


@pytest.mark.parametrize("content", [b'{"a": 1} // why', b"\xff\xfe{\x00}\x00", b"{"])
def test_a_file_that_cannot_be_edited_is_left_as_it_is(tmp_path, content):
    file = tmp_path / "mcp.json"
    file.write_bytes(content)
    for change in (lambda: install(CURSOR, file, "lamina", ENTRY), lambda: uninstall(CURSOR, file, "lamina")):
        with pytest.raises(InvalidInput, match="Nothing was changed"):
            change()
    assert (others(tmp_path), file.read_bytes()) == (["mcp.json"], content)


@POSIX
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "mcp.json"
    target.write_text("{}")
    link = tmp_path / "mcp.json"
    link.symlink_to(target)
    install(CURSOR, link, "lamina", ENTRY)
    assert link.is_symlink()
    assert "lamina" in target.read_text()
    assert others(target.parent) == ["mcp.json", "mcp.json.lamina-backup"]


def test_a_folder_is_no_file_of_settings(tmp_path):
    with pytest.raises(InvalidInput, match="is no file"):
        install(CURSOR, tmp_path, "lamina", ENTRY)


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    file = tmp_path / "mcp.json"
    file.write_text("{}")
    backed_up = files._backed_up

    def slowly(path):
        made = backed_up(path)
        file.write_text('{"theirs": 1}')
        return made

    monkeypatch.setattr(files, "_backed_up", slowly)
    with pytest.raises(Conflict, match="changed meanwhile"):
        install(CURSOR, file, "lamina", ENTRY)
    assert file.read_text() == '{"theirs": 1}'
    assert not [name for name in others(tmp_path) if name.startswith(".mcp.json")]


def test_a_client_without_settings_of_projects_says_so(tmp_path):
    with pytest.raises(InvalidInput, match="Claude Desktop has no settings of projects"):
        CLIENTS["claude-desktop"].file(project=tmp_path)
    assert CLIENTS["vscode"].file(project=tmp_path) == tmp_path / ".vscode" / "mcp.json"
