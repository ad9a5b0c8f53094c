"""Search for several phrasings of a question.

LangChain's retriever can still be used, or be replaced with the argument ``strategy``.
"""

from langchain_classic.retrievers import MultiQueryRetriever
from langchain_common import Letters, ScriptedChat, load, names, show
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever

QUESTION = "What do people drink?"
PHRASINGS = "Which tea is fermented?\nFrom which beans is espresso pressed?"
MODEL = ScriptedChat(reply=lambda messages: PHRASINGS)
MEANING = {"similarity": "cosine", "group": "ROOT"}


def before():
    store = InMemoryVectorStore.from_documents(load(), Letters())
    one = store.as_retriever(search_kwargs={"k": 1})
    documents = MultiQueryRetriever.from_llm(one, MODEL).invoke(QUESTION)
    return sorted(names(documents))


def after():
    one = NodeGraphRetriever.from_documents(load(), Letters(), k=1, **MEANING)
    kept = MultiQueryRetriever.from_llm(one, MODEL).invoke(QUESTION)
    strategy = NodeGraphRetriever.from_documents(
        load(), Letters(), strategy="multi_query", llm=MODEL, k=2, **MEANING
    )
    # the results are ranked by all phrasings
    assert names(strategy.invoke(QUESTION)) == names(kept)
    return sorted(names(kept))


if __name__ == "__main__":
    show(before, after)
