"""Search for several phrasings of a question, written by a prompt of one's own.

After: around the same vector store, with the same prompt. The documents are one ranking, where
they were a list of those of each phrasing; so they are compared without their order.
"""

from langchain_classic.retrievers import MultiQueryRetriever
from langchain_common import Letters, ScriptedChat, load, names, show
from langchain_core.prompts import PromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin import retrievers
from nodekin.adapters.langchain import NodeGraphRetriever

QUESTION = "What do people drink?"
PROMPT = PromptTemplate.from_template("Write two other phrasings of: {question}")
PHRASINGS = "Which tea is fermented?\nFrom which beans is espresso pressed?"
MODEL = ScriptedChat(reply=lambda messages: PHRASINGS)


def existing():
    store = InMemoryVectorStore.from_documents(load(), Letters())
    return store.as_retriever(search_kwargs={"k": 1})


def before():
    retriever = MultiQueryRetriever.from_llm(existing(), MODEL, prompt=PROMPT)
    return sorted(names(retriever.invoke(QUESTION)))


def after():
    search = retrievers.MultiQueryRetriever(
        existing(), MODEL, prompt=PROMPT, include_query=False, top_k=2
    )
    return sorted(names(NodeGraphRetriever(retriever=search).invoke(QUESTION)))


if __name__ == "__main__":
    show(before, after)
