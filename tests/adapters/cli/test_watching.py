"""``nodekin index --watch`` reads changed files."""

import threading
from pathlib import Path

import pytest

from nodekin.adapters.cli import index_command
from nodekin.adapters.cli import index_command as watching


def test_watch_updates_index_after_changes(nodekin, here, monkeypatch) -> None:
    def changes(sources):
        assert sources == (here / "docs",)
        (here / "docs" / "new.md").write_text("White tea is withered.")
        yield
        (here / "docs" / "tea.md").unlink()
        yield

    monkeypatch.setattr(index_command, "changes", changes)
    ran = nodekin("index", "docs", "--watch")
    assert ran.status == 0
    lines = [line.split(": ", 1)[1] for line in ran.out.splitlines() if "documents in" in line]
    assert lines == ["3 added", "1 added, 3 unchanged", "1 removed, 3 unchanged"]
    assert nodekin("search", "withered", "--json").documents == ["docs/new.md"]


@pytest.mark.parametrize(
    ("name", "counts"),
    [("docs/a.md", True), ("docs/.nodekin/x", False), ("docs/.gitignore", True), ("a", False)],
)
def test_changes_ignores_hidden_files(tmp_path, name, counts) -> None:
    assert watching._is_visible(tmp_path / name, tmp_path / "docs") == counts


def test_changes_yields_after_write(tmp_path: Path) -> None:
    """Write again and again until the change is seen, however long it takes to begin to watch."""
    seen = threading.Event()

    def write() -> None:
        number = 0
        while not seen.wait(0.2):
            number += 1
            (tmp_path / "a.txt").write_text(str(number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in watching.changes([tmp_path]):
            break
    finally:
        seen.set()
        writer.join()
