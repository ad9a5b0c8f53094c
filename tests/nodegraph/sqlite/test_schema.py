"""Files of older and newer formats."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from entity_links import fill as fill_entities
from entity_links import of_anna
from entity_links import opened as opened_entities
from graph_files import fill, opened, tables

from nodekin.nodegraph import Link, NodeGraph, StoreError
from nodekin.nodegraph.sqlite import connection, file
from nodekin.nodegraph.sqlite.connection import APPLICATION, MIGRATIONS

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


def test_links_of_a_file_of_the_first_format(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "graph")
    database.executescript(MIGRATIONS[0])
    database.executescript(
        """
        INSERT INTO documents VALUES (1, 'a'), (2, 'b');
        INSERT INTO derivations
            VALUES (1, 0, 1, NULL, '', '', '', 1), (2, 0, 2, NULL, '', '', '', 1);
        INSERT INTO nodes (key, id, derivation, place, text, sequence)
            VALUES (1, 'a', 1, 0, 'tea', 1), (2, 'b', 2, 0, 'cup', 1);
        INSERT INTO links
            VALUES (1, 1, 2, 'cites', 0.5, '{"page":3}', 0), (2, 2, 1, 'm', 1, NULL, 1);
        """
    )
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute("PRAGMA user_version = 1")
    database.close()
    with NodeGraph(store=tmp_path / "graph") as graph:
        (cites,), (member,) = graph.reader.links_of(["a", "b"])
        assert cites == Link("a", "b", "cites", 0.5)
        assert (cites.metadata, cites.derived, member.derived) == ({"page": 3}, False, True)
        graph.remove("a")
        assert graph.links("b") == []


def test_links_that_an_older_file_has_lost_are_mended(tmp_path: Path) -> None:
    path = str(tmp_path / "graph")
    with opened_entities(path) as graph:
        fill_entities(graph)
    database = sqlite3.connect(path)
    database.execute("DELETE FROM links WHERE target = 'three'")
    for table in ("nodes", "links"):
        database.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    database.execute("PRAGMA user_version = 4")
    database.commit()
    database.close()
    with opened_entities(path) as graph:
        graph.build("entity")
        assert sorted(of_anna(graph)) == ["one", "three", "two"]
