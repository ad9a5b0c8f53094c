"""A parent document retriever, which searches small chunks and returns larger chunks.

With nodekin, this takes one line, and ``k`` is the number of larger chunks.
"""

from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_common import Letters, load, show
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from nodekin.adapters.langchain import NodeGraphRetriever

QUESTION = "Which tea is fermented?"
CHILDREN = RecursiveCharacterTextSplitter(chunk_size=40, chunk_overlap=0)
PARENTS = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0)


def parts(retriever):
    return [(d.metadata["source"], d.page_content) for d in retriever.invoke(QUESTION)[:2]]


def before():
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(Letters()),
        docstore=InMemoryStore(),
        child_splitter=CHILDREN,
        parent_splitter=PARENTS,
    )
    retriever.add_documents(load())
    return parts(retriever)


def after():
    splitters = {"child_splitter": CHILDREN, "parent_splitter": PARENTS}
    return parts(NodeGraphRetriever.from_documents(load(), Letters(), **splitters))


if __name__ == "__main__":
    show(before, after)
