"""Configure a retriever for each call. ``k`` and ``filter`` are both fields and call arguments."""

from langchain_common import Letters, load, names, show
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever

QUESTION = "What is fermented?"


def configured(retriever, **fields):
    configs = [{"configurable": {}}, {"configurable": fields}]
    return [names(retriever.invoke(QUESTION, config)) for config in configs]


def before():
    store = InMemoryVectorStore.from_documents(load(), Letters())
    retriever = store.as_retriever(search_kwargs={"k": 1}).configurable_fields(
        search_kwargs=ConfigurableField("search_kwargs")
    )
    only = {"k": 2, "filter": lambda document: document.metadata["year"] < 1650}
    return configured(retriever, search_kwargs=only)


def after():
    options = {"group": "ROOT", "similarity": "cosine", "k": 1}
    retriever = NodeGraphRetriever.from_documents(load(), Letters(), **options)
    fields = {name: ConfigurableField(name) for name in ("k", "filter")}
    only = {"k": 2, "filter": {"year": {"$lt": 1650}}}
    assert names(retriever.invoke(QUESTION, **only)) == ["tea.md", "bridge.md"]
    return configured(retriever.configurable_fields(**fields), **only)


if __name__ == "__main__":
    show(before, after)
