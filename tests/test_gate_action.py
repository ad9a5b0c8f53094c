"""The GitHub Action and the pre-commit hook: their steps are run as a runner would."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="the action and the hook are YAML")

REPO = Path(__file__).parents[1]
ACTION = REPO / "packaging" / "action" / "action.yml"
TEXTS = [f"The tea of hill {n} is called {'abcdefghijkl'[n] * 4}." for n in range(12)]

MODULE = """
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever


def make_retriever():
    return Retriever(NodeGraph("docs", progress=False), "ROOT")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with documents, questions and a baseline."""
    tmp_path = tmp_path_factory.mktemp("gate")
    (tmp_path / "docs").mkdir()
    for n, text in enumerate(TEXTS):
        (tmp_path / "docs" / f"{n}.txt").write_text(text, encoding="utf-8")
    with (tmp_path / "q.jsonl").open("w") as file:
        for n, text in enumerate(TEXTS):
            question = f"How is the tea of hill {n} called?"
            file.write(f'{{"id": "{n}", "question": "{question}", "answers": ["{text[-5:-1]}"]}}\n')
    save = "eval --data q.jsonl --docs docs --save-baseline b.jsonl -q -m answer_in_context@1"
    assert run(f"nodekin {save}", tmp_path).returncode == 0
    return tmp_path


def run(program, folder, **environment):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", program],  # as GitHub does
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def run_action(folder, **inputs):
    """Run the steps with these inputs; return the last, the summary and the outputs."""
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    values = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()}
    values.update({name.replace("_", "-"): value for name, value in inputs.items()})
    assert set(values) == set(action["inputs"])
    for path in folder.glob("github_*"):
        path.unlink()
    files = {name: str(folder / name.lower()) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    ran = None
    for step in action["runs"]["steps"]:
        if step.get("if") == "inputs.install != ''" and not values["install"]:
            continue
        assert ran is None or ran.returncode == 0, ran.stderr  # else a runner ends here
        environment = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: values[m[1]], value)
            for name, value in step["env"].items()
        }
        assert "${{" not in step["run"]
        ran = run(step["run"], folder, **environment, **files)
    summary, output = (Path(path).read_text(encoding="utf-8") for path in files.values())
    return ran, summary, output


ARGUMENTS = {
    "data": "q.jsonl",
    "baseline": "b.jsonl",
    "max_loss": "answer_in_context@1=.05",
    "docs": "docs",
    "args": "-m answer_in_context@1",
    "install": "",
}


def test_inputs_are_not_run(folder):
    hostile = {**ARGUMENTS, "docs": "docs$(touch owned)", "args": "-m `touch owned` *"}
    ran, _, output = run_action(folder, **hostile)
    assert (ran.returncode, output) == (2, "passed=false\n")
    assert not (folder / "owned").exists()


@pytest.mark.slow
def test_hook_and_action_measure_a_function(folder):
    (hook,) = yaml.safe_load((REPO / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert not hook["pass_filenames"]
    assert hook["args"][:2] == ["default", "--data"]
    (folder / "mine.py").write_text(MODULE, encoding="utf-8")
    save = "mine:make_retriever --data q.jsonl --save-baseline mine.jsonl"
    assert run(f"{hook['entry']} {save}", folder).returncode == 0
    options = "--data q.jsonl --baseline mine.jsonl --max-loss answer_in_context@1=.05"
    args = ["mine:make_retriever", *options.split()]
    ran = run(f"{hook['entry']} {shlex.join(args)}", folder)
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, "the gate passed"), ran.stderr
    inputs = {**ARGUMENTS, "baseline": "mine.jsonl", "retriever": "mine:make_retriever", "docs": ""}
    ran, summary, output = run_action(folder, **inputs)
    assert (ran.returncode, output) == (0, "passed=true\n"), ran.stderr
    assert "make_retriever" in summary


def test_action_writes_summary_on_success_and_failure(folder):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    with_install = {**ARGUMENTS, "install": "pyyaml"}  # already installed, so pip downloads nothing
    ran, summary, output = run_action(folder, **with_install)
    assert (ran.returncode, output) == (0, "passed=true\n"), ran.stderr
    assert summary.startswith("### Retrieval: the gate passed")
    for n in range(0, 12, 2):
        (folder / "docs" / f"{n}.txt").write_text("Milk.", encoding="utf-8")
    ran, summary, output = run_action(folder, **ARGUMENTS, figure="figure.svg")
    assert (ran.returncode, output) == (1, "passed=false\n"), ran.stderr
    assert "answer_in_context@1 of default" in summary
    assert "worse by more than the 0.05 allowed" in summary
    assert (folder / "figure.svg").exists()
