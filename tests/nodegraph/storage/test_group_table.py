"""The groups of a store: names, and revisions that identify one history."""

import random
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import NodeGraph


@pytest.mark.parametrize("name", ["a b", "组", "half \ud800", "x" * 300, "ROOT2"])
def test_group_names_may_be_any_text(name: str, tmp_path: Path) -> None:
    with NodeGraph(store=tmp_path / "g") as graph:
        graph.add("one\ntwo")
        graph.create_node_group(name, str.splitlines)
        assert [node.text for node in graph.nodes(name)] == ["one", "two"]
        graph.close()
        assert [node.group for node in graph.nodes(name)] == [name, name]


def test_revision_of_another_history_is_unknown(tmp_path: Path) -> None:
    """Indexes beside a restored backup must not apply changes of the lost history."""
    backup = tmp_path / "backup"
    with NodeGraph(store=tmp_path / "g") as graph:
        graph.add("one")
    backup.write_bytes((tmp_path / "g").read_bytes())
    with NodeGraph(store=tmp_path / "g") as graph:
        graph.add("lost")
        lost = graph.reader.revision("ROOT")
    (tmp_path / "g").write_bytes(backup.read_bytes())
    with NodeGraph(store=tmp_path / "g") as graph:
        graph.add("other")
        assert graph.reader.changes("ROOT", lost).complete


def test_seeded_program_gets_other_revisions(tmp_path: Path) -> None:
    """The index of a deleted file must not be used for a new file of a seeded program."""
    revisions = set()
    for name in ("one", "two", "three"):
        random.seed(0)
        np.random.seed(0)
        with NodeGraph(store=tmp_path / name) as graph:
            graph.add(["green tea", "black tea"])
            revisions.add(graph.reader.revision("ROOT"))
    assert len(revisions) > 1
