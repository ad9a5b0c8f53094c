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


def folder(last: str = "two") -> list[Read]:
    return [
        Read("one", file_path="/a.txt", last_modified_date="2020"),
        Read("page one", file_path="/b.pdf", page_label="1"),
        Read(last, file_path="/b.pdf", page_label="2"),
        Read("one", file_path="/c.txt"),
    ]


def test_folder_with_random_ids_is_added_once(tmp_path: Path) -> None:
    for store in (None, tmp_path / "graph.db"):
        with NodeGraph(store=store, progress=False) as graph:
            ids = graph.add(folder())
            assert len(set(ids)) == 4
            again = folder()
            again[0].metadata["last_modified_date"] = "2021"
            assert graph.add(again) == ids
            assert [graph.add(document) for document in folder()] == [[i] for i in ids]
            assert len(graph.nodes("ROOT")) == 4
            assert graph.nodes("ROOT")[0].metadata["file_path"] == "/a.txt"


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
