"""The workflows: every action by the hash of its commit, no permission without use, no text run as code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

WORKFLOWS = sorted((Path(__file__).parents[2] / ".github" / "workflows").glob("*.yml"))
USES = re.compile(r"uses:")
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
MAY_WRITE = {
    ("codeql", "analyse"): {"security-events"},
    ("release", "publish"): {"id-token", "attestations"},
}


def unpinned(text):
    return [line.strip() for line in text.splitlines() if USES.search(line) and not PINNED.search(line)]


def written_to(permissions):
    return {name for name, level in (permissions or {}).items() if level != "read"}


def run_as_code(workflow):
    """Scripts into which the runner puts texts of others; they belong into `env`."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "${{" in step.get("run", "")]


def test_there_are_workflows_for_tests_release_audit_and_analysis():
    assert {path.stem for path in WORKFLOWS} == {"ci", "release", "audit", "codeql"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_pinned_bounded_and_may_do_the_least(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert unpinned(text) == []
    assert run_as_code(workflow) == []
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in text
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 75
        assert written_to(job.get("permissions")) == MAY_WRITE.get((path.stem, name), set())
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize(
    ("line", "is_pinned"),
    [
        (f"- uses: actions/checkout@{'a' * 40} # v7.0.1", True),
        (f"- uses: github/codeql-action/init@{'0' * 40} # v4.36.2", True),
        (f"- uses: actions/checkout@{'a' * 40}", False),
        (f"- uses: actions/checkout@{'a' * 39} # v7.0.1", False),
        ("- uses: actions/checkout@v7", False),
        ("- uses: ./.github/actions/ours", False),
        ("- uses: docker://alpine:3", False),
    ],
)
def test_the_rule_on_pins_sees(line, is_pinned):
    assert (unpinned(line) == []) is is_pinned


def test_the_rule_on_scripts_sees_a_title_that_is_run():
    step = {"run": "echo ${{ github.event.pull_request.title }}"}
    assert run_as_code({"jobs": {"a": {"steps": [step, {"run": "make"}]}}}) == [step["run"]]
