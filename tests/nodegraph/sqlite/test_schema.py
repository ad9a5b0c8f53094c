"""Files of older and newer formats."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from entity_links import fill as fill_entities
from entity_links import of_anna
from entity_links import opened as opened_entities
from graph_files import fill, opened, tables
from old_graphs import check_old, formats, write_file

from nodekin.nodegraph import NodeGraph, StoreError
from nodekin.nodegraph.sqlite import connection, file
from nodekin.nodegraph.sqlite.connection import MIGRATIONS

UPGRADE = """
-- Whether somebody has read it.
ALTER TABLE documents ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
UPDATE documents SET seen = 1;
"""


def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    fill(path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = tables(path)
    with pytest.raises(StoreError, match=r"newer nodekin \(format 99, .*upgrade nodekin"):
        NodeGraph(store=path)
    assert tables(path) == before


@pytest.fixture
def migrations(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give today's program one more step than its files have."""

    def more(step: str) -> None:
        steps = [*connection.MIGRATIONS, step]
        for module in (connection, file):
            monkeypatch.setattr(module, "MIGRATIONS", steps)

    return more


def test_an_older_file_becomes_a_newer_one(path: Path, migrations: Callable[[str], None]) -> None:
    fill(path)
    before = tables(path)
    migrations(UPGRADE)
    with opened(path) as graph:
        assert [node.id for node in graph.nodes("ROOT")] == [f"d{i}" for i in range(30)]
        assert len(graph.nodes("word")) == 30 * 42
    now = tables(path)
    assert {row[-1] for row in now["documents"]} == {1}
    assert now["nodes"] == before["nodes"]
    assert now["version"] == [(before["version"][0][0] + 1,)]


def test_a_migration_that_fails_leaves_the_older_file_whole(
    path: Path, migrations: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    before = tables(path)
    with monkeypatch.context() as patch:
        for module in (connection, file):
            patch.setattr(
                module, "MIGRATIONS", [*connection.MIGRATIONS, UPGRADE + "DROP TABLE never;"]
            )
        with pytest.raises(StoreError, match="no such table: never"):
            NodeGraph(store=path)
    assert tables(path) == before
    migrations(UPGRADE)
    with opened(path) as graph:
        assert len(graph.nodes("word")) == 30 * 42


@pytest.mark.parametrize("version", formats("sqlite"))
def test_a_file_of_each_format_is_read_searched_and_written(tmp_path: Path, version: int) -> None:
    write_file(tmp_path / "graph", version)
    check_old(tmp_path / "graph")


def test_there_is_a_file_of_each_format() -> None:
    assert formats("sqlite") == [*range(1, len(MIGRATIONS))]


def test_links_that_an_older_file_has_lost_are_mended(tmp_path: Path) -> None:
    path = str(tmp_path / "graph")
    with opened_entities(path) as graph:
        fill_entities(graph)
    database = sqlite3.connect(path)
    database.execute("DELETE FROM links WHERE target = 'three'")
    for table in ("nodes", "links", "memory", "search_texts"):
        database.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    database.execute("PRAGMA user_version = 4")
    database.commit()
    database.close()
    with opened_entities(path) as graph:
        graph.build("entity")
        assert sorted(of_anna(graph)) == ["one", "three", "two"]


def test_a_process_that_is_older_than_the_tables_by_now_writes_nothing(path: Path) -> None:
    with opened(path) as graph:
        graph.add(["tea"])
        database = sqlite3.connect(path)
        database.execute("PRAGMA user_version = 99")
        database.close()
        with pytest.raises(StoreError, match=r"newer nodekin \(format 99, .*upgrade nodekin"):
            graph.add(["water"])
        assert [node.text for node in graph.nodes("ROOT")] == ["tea"]
