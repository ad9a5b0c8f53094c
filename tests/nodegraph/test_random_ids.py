"""Documents of files with a new random id in each run."""

import uuid
from pathlib import Path
from typing import Any

from llama_index.core import SimpleDirectoryReader
from llama_index.core.readers import StringIterableReader

from nodekin.nodegraph import Document, NodeGraph


class Read:
    """A document of LlamaIndex's reader."""

    def __init__(self, text: str, id: str | None = None, **metadata: Any) -> None:
        self.text, self.metadata, self.node_id = text, metadata, id or str(uuid.uuid4())

    def get_content(self) -> str:
        return self.text


def test_directory_reader_documents_are_added_once(tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_text("Green tea is a drink.", "utf-8")
    (tmp_path / "茶.md").write_text("# 茶\n\n红茶是全发酵茶。", "utf-8")
    graph = NodeGraph(progress=False)
    loaded = SimpleDirectoryReader(str(tmp_path)).load_data()
    ids = graph.add(loaded)
    assert len(set(ids)) == len(loaded)
    assert graph.add(SimpleDirectoryReader(str(tmp_path)).load_data()) == ids
    assert graph.add(StringIterableReader().load_data(["Rivers run.", "Seas don't."]))
    assert len(graph.nodes("ROOT")) == 2 + len(loaded)


def test_add_keeps_chosen_ids() -> None:
    graph = NodeGraph(progress=False)
    random = str(uuid.uuid4())
    items = [
        Read("one", "/a.txt", file_path="/a.txt"),
        Read("two", random),  # a database key
        Document("three", {"file_path": "/a.txt"}, id=str(uuid.uuid4())),
    ]
    ids = graph.add(items)
    assert ids == ["/a.txt", random, items[2].id]
