"""Ignore files: the patterns of git, and hostile patterns."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph

PATTERNS = [
    *("*.log", "!keep.log", "build/", "/scrap", "docs/*.txt", "docs/**", "**/cache", "a/**/b"),
    *("**/logs/*.txt", "a/**", "/*", "!/docs/", "file?.txt", "[a-c].txt", "[!a-c].txt", "[^a].txt"),
    *("[]a].txt", "[a-].txt", "[[:digit:]]*", "[[:upper:]x].txt", "[[:wrong:]]", "[[:a].txt"),
    *("[a", "a\\", "\\!x.txt", "\\#x.txt", "# comment", "", "!", "/", "//", "a//b", "trailing  "),
    *(
        "escaped\\ ",
        "\\*.txt",
        "*",
        "**",
        "***",
        "**/",
        "/**",
        "a*b*c.txt",
        "*.*",
        "a/*/b",
        "[z-a]",
        "*ab*bx*.txt",
    ),
    *("a/*/b", "**/**/b", "a/**/**/b", "*/b", "\ufeffb", "b\r", "[\\]].txt", "[--0]x", "d/b/"),
]
"""Patterns of usual and unusual ignore files."""

NAMES = [
    *("a", "b", "c", "d", "docs", "cache", "logs", "build", "scrap", "a.txt", "b.txt", "].txt"),
    *(
        "x.txt",
        "X.txt",
        "file1.txt",
        "file12.txt",
        "a.log",
        "keep.log",
        "!x.txt",
        "#x.txt",
        "*.txt",
    ),
    *("*.txt", "trailing", "escaped ", "abxc.txt", "1st", "-x", "z", "-.txt", "[a.txt"),
]
"""Names of files and folders."""


def ignored_by_git(folder: Path, paths: list[str]) -> set[str]:
    names = "\0".join(paths).encode()
    command = ["git", "check-ignore", "--stdin", "-z", "--no-index"]
    run = subprocess.run(command, cwd=folder, input=names, capture_output=True, timeout=60)
    assert run.returncode in (0, 1), run.stderr
    return set(run.stdout.decode().split("\0")) - {""}


def test_parts_of_pattern_do_not_overlap(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*ab*bc*.txt\n")
    for name in ("abc.txt", "xabc.txt", "abbc.txt", "ab-bc-1.txt"):
        (tmp_path / name).write_text("Green tea.")
    read = {node.id.partition("/")[2] for node in NodeGraph(tmp_path, progress=False).nodes("ROOT")}
    assert read == {"abc.txt", "xabc.txt"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git")
def test_patterns_match_as_in_git(tmp_path: Path) -> None:
    rng = random.Random(7)
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        subprocess.run(["git", "init", "-q", folder], check=True, timeout=60)
        paths = set()
        while len(paths) < 60:
            *folders, name = rng.choices(NAMES, k=rng.randint(1, 4))
            path = "/".join([*(f"{part}.d" for part in folders), name])
            inside = "/".join([*folders, name])
            paths.add(rng.choice([path, inside]))
        for path in sorted(paths):
            file = folder / path
            if any((folder / parent).is_file() for parent in Path(path).parents) or file.exists():
                paths.discard(path)
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("Green tea.")
        patterns = rng.sample(PATTERNS, 1 if number % 2 else 6)
        (folder / ".gitignore").write_bytes("\n".join(patterns).encode())
        ordered = sorted(paths)
        ignored = ignored_by_git(folder, ordered)
        readable = {path for path in ordered if path.endswith(".txt") or path.endswith(".log")}
        graph = NodeGraph(folder, progress=False)
        read = {node.id.partition("/")[2] for node in graph.nodes("ROOT")}
        assert read & readable == readable - ignored, patterns


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 9 + "b",
        "*a" * 2_000 + "b",
        "*a*a" * 5 + "[!a]",
        "*?*[a-z]" * 200 + "b",
        "**/" + "*a" * 9 + "b/*.log",
        "**/*a/" * 300 + "b",
        "**/" * 100_000 + "b",
        "[a" * 100_000,
        "*" * 900_000,
        "\\" * 99_999,
        "*a*[" * 10_000 + "b]",
    ],
    ids=range(11),
)
def test_hostile_pattern_ends_and_others_apply(tmp_path: Path, pattern: str) -> None:
    (tmp_path / ".gitignore").write_text(f"{pattern}\n*.log\n!tea.txt\n")
    deep = tmp_path.joinpath(*["a" * 40] * 20)
    deep.mkdir(parents=True)
    for folder in (tmp_path, deep):
        for name in ("a" * 200 + ".txt", "tea.txt", "old.log"):
            (folder / name).write_text("Green tea.")
    graph = NodeGraph(tmp_path, progress=False)
    names = {Path(node.id).name for node in graph.nodes("ROOT")}
    assert "tea.txt" in names
    assert "old.log" not in names


def test_huge_ignore_file_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ".gitignore").write_text("*.txt\n" * 200_000)
    (tmp_path / "tea.txt").write_text("Green tea.")
    graph = NodeGraph(tmp_path, progress=False)
    assert len(graph.nodes("ROOT")) == 1
    assert ".gitignore must have at most 1,000,000 bytes" in caplog.text
