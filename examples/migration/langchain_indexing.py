"""Keep a vector store in sync with its source by using LangChain's ``index()``.

The vector store is a ``NodeGraphVectorStore``.
"""

from langchain_classic.indexes import SQLRecordManager
from langchain_common import Letters, load, show
from langchain_core.documents import Document
from langchain_core.indexing import index
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphVectorStore


def synchronize(store):
    records = SQLRecordManager("pages", db_url="sqlite:///:memory:")
    records.create_schema()
    pages = load()
    changed = Document("Tea is drunk hot.", metadata=pages[0].metadata, id="tea")
    settings = {"cleanup": "full", "source_id_key": "source", "key_encoder": "sha256"}
    runs = [pages, pages, [changed, *pages[1:]], pages[1:], []]
    return [index(run, records, store, **settings) for run in runs]


def before():
    return synchronize(InMemoryVectorStore(Letters()))


def after():
    return synchronize(NodeGraphVectorStore(Letters(), group="FineChunk"))


if __name__ == "__main__":
    show(before, after)
