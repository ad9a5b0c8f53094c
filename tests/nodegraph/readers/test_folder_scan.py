"""Folders: files that are read, skipped and reported."""

import os
import subprocess
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = (*EVERYTHING, ".hidden.txt", ".git/config.txt", "node_modules/x/y.md")
    for name in names:
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "docs"


def read(folder: Path, **options) -> list[str]:
    graph = NodeGraph(folder, progress=False, reading=ReadOptions(**options))
    return [node.id.removeprefix("docs/") for node in graph.nodes("ROOT")]


EVERYTHING = [
    *("a.txt", "build/out.txt", "src/b.txt", "src/c.log"),
    *("src/deep/d.txt", "src/deep/e.txt", "src/keep.log"),
]


def test_hidden_files_are_skipped_by_default(folder: Path) -> None:
    (folder / ".nodekin").mkdir()  # the index is never read
    (folder / ".nodekin/index.json").write_text("{}")
    graph = NodeGraph(folder, progress=False)
    assert len(graph.nodes("ROOT")) == len(EVERYTHING)
    assert str(graph.read_report) == "7 read; 2 hidden, 1 installed packages"
    read_paths = set(read(folder, hidden=True))
    assert {".git/config.txt", ".hidden.txt"} < read_paths
    assert ".nodekin/index.json" not in read_paths


def test_installed_packages_are_skipped_by_default(folder: Path) -> None:
    for name in ("lib/site-packages/x/readme.md", "src/__pycache__/a.txt"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(name)
    assert read(folder) == EVERYTHING
    everything = {"node_modules/x/y.md", "lib/site-packages/x/readme.md", "src/__pycache__/a.txt"}
    assert set(read(folder, skip_folders=())) == everything | set(EVERYTHING)
    graph = NodeGraph(folder / "node_modules", progress=False)  # a named folder is read
    assert [node.id for node in graph.nodes("ROOT")] == ["node_modules/x/y.md"]


def test_text_files_without_suffix_are_read(folder: Path) -> None:
    for name in ("README", "Makefile", "src/LICENSE", "src/Dockerfile", "src/paper.cls"):
        (folder / name).write_text(f"{name} about kettles")
    for name, text in (("core", b"\0\1"), ("a.out", b"\xff\0"), ("id_rsa", b"-----BEGIN KEY-----")):
        (folder / "src" / name).write_bytes(text)
    (folder / "src" / "NEWS").write_bytes(b"\x89PNG" + bytes(99))
    graph = NodeGraph(folder, progress=False)
    named = {"README", "Makefile", "src/LICENSE", "src/Dockerfile", "src/paper.cls"}
    ids = {node.id.removeprefix("docs/") for node in graph.nodes("ROOT")}
    assert ids == {*EVERYTHING, *named}
    assert sorted(graph.read_report.unsupported) == [
        str(folder / "src" / name) for name in ("a.out", "core", "id_rsa")
    ]
    assert [error.kind for error in graph.read_report.skipped.values()] == ["not text"]


def test_ignore_files_work_as_in_git(folder: Path) -> None:
    (folder / ".gitignore").write_text("build/\n*.log\n!keep.log\n/scrap\n")
    (folder / "src" / ".gitignore").write_text("/deep/e.txt\n")
    (folder / "scrap").mkdir()
    graph = NodeGraph(folder, progress=False)
    ids = [node.id.removeprefix("docs/") for node in graph.nodes("ROOT")]
    assert ids == ["a.txt", "src/b.txt", "src/deep/d.txt", "src/keep.log"]
    assert graph.read_report.passed_over["ignored"] == 4
    (folder / "src" / ".nodekinignore").write_text("b.txt\n!c.log\n")
    assert "src/b.txt" not in read(folder)
    assert "src/c.log" in read(folder)
    assert read(folder, ignore_files=()) == EVERYTHING


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_symbolic_links_are_skipped_by_default(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "broken.txt").symlink_to(tmp_path / "nowhere")
    (folder / "inside.txt").symlink_to(folder / "a.txt")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.txt")
    graph = NodeGraph(folder, progress=False)
    ids = [node.id.removeprefix("docs/") for node in graph.nodes("ROOT")]
    assert sorted(EVERYTHING) == ids
    assert dict(graph.read_report.passed_over) == {
        "hidden": 2,
        "installed packages": 1,
        "links": 3,
        "not regular files": 1,
    }


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_broken_link_is_reported_until_repaired(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "nowhere.txt"
    link = folder / "broken.txt"
    link.symlink_to(target)
    (folder / ".dangling.txt").symlink_to(target)
    graph = NodeGraph(folder, progress=False)
    assert str(graph.read_report).startswith("7 read, 1 skipped: 1 broken link; ")
    assert "is a symbolic link to a missing file" in str(graph.read_report.skipped[str(link)])
    assert [str(failure.error).partition(" ")[0] for failure in graph.failures] == [str(link)]
    with pytest.raises(ReadError, match="is a symbolic link to a missing file; restore"):
        NodeGraph(folder, progress=False, on_error="raise")
    target.write_text("tea")
    graph.refresh()
    assert not graph.failures
    assert not graph.read_report.skipped


def test_report_counts_skipped_files(folder: Path) -> None:
    (folder / "x.unknown").write_bytes(b"\0")
    (folder / "y.unknown").write_bytes(b"\0")
    (folder / "z.zip.txt").write_bytes(b"PK\x03\x04" + bytes(99))
    (folder / "huge.txt").write_text("x" * 1001)
    (folder / "large.txt").write_text("x" * 1000)
    graph = NodeGraph(folder, progress=False, reading=ReadOptions(max_bytes=1000))
    assert str(graph.read_report) == (
        "8 read, 4 skipped: 2 without a reader, 1 too large, 1 not text; 2 hidden, "
        "1 installed packages"
    )
    assert str(folder / "huge.txt") in graph.read_report.skipped
    graph.refresh()
    assert graph.read_report.unchanged == 8
    assert graph.read_report.read == 0


def test_keys_and_binary_data_are_not_read(folder: Path) -> None:
    unread = {
        "sky.fits": b"SIMPLE  =                    T".ljust(2880) + bytes(range(256)) * 9,
        "prod.env": b"OPENAI_API_KEY=sk-1\n",
        "credentials": b"aws_secret_access_key = x\n",
        "main.tfvars": b'password = "x"\n',
        "bag.txt2": b"Bag Attributes\n-----BEGIN PRIVATE KEY-----\nx\n",
        "age": b"# created\nAGE-SECRET-KEY-1QQ\n",
        "plot.eps": b"%!PS-Adobe-3.0\n",
    }
    before = read(folder)
    for name, data in unread.items():
        (folder / name).write_bytes(data)
    graph = NodeGraph(folder, progress=False)
    assert [node.id.removeprefix("docs/") for node in graph.nodes("ROOT")] == before
    assert sorted(Path(path).name for path in graph.read_report.unsupported) == sorted(unread)


@pytest.mark.skipif(os.name == "nt", reason="shorter paths")
def test_deep_folders_are_read_up_to_path_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, depth in (("a", 1_200), ("a" * 200, 40)):
        top = tmp_path / f"of_{len(name)}"
        top.mkdir()
        monkeypatch.chdir(top)
        for number in range(depth):
            Path(f"tea{number}.txt").write_text("Green tea.")
            os.mkdir(name)
            os.chdir(name)
    monkeypatch.chdir(tmp_path)
    assert len(NodeGraph(tmp_path / "of_1", progress=False).nodes("ROOT")) == 1_200
    graph = NodeGraph(tmp_path / "of_200", progress=False)
    assert 10 < len(graph.nodes("ROOT")) < 40
    assert graph.read_report.passed_over["unreadable"]
    assert "File name too long" in caplog.text
    remove_deep_folder(tmp_path)


def remove_deep_folder(folder: Path) -> None:
    """Remove a folder that is too deep for ``shutil.rmtree``."""
    subprocess.run(["rm", "-r", *folder.iterdir()], check=True, timeout=60)
