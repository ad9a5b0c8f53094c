"""Search summaries that a model writes, return the pages.

After: summaries are a group of nodes below the pages, written once, when they are first needed;
there are no ids to match and no second store.
"""

import uuid

from langchain_classic.retrievers import MultiVectorRetriever
from langchain_common import Letters, ScriptedChat, load, names, show
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import LLMExtractor, NodeGraph

QUESTIONS = ["What is made of leaves?", "A drink from beans", "long rivers"]
PROMPT = ChatPromptTemplate.from_template("Summarize the text:\n\n{text}")
SUMMARIES = {
    "Green tea": "A drink made of leaves.",
    "Coffee is": "A drink made from beans.",
    "Rivers run": "Long rivers and their fish.",
    "The bridge": "An old arch of stone.",
}


def summarize(messages):
    return next(s for begin, s in SUMMARIES.items() if begin in messages[-1].content)


MODEL = ScriptedChat(reply=summarize)


def before():
    pages = load()
    chain = (lambda page: page.page_content) | PROMPT | MODEL | StrOutputParser()
    keys = [str(uuid.uuid4()) for _ in pages]
    retriever = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(Letters()), byte_store=None, docstore=InMemoryStore()
    )
    summaries = chain.batch(pages, {"max_concurrency": 4})
    retriever.vectorstore.add_documents(
        [
            Document(summary, metadata={"doc_id": key})
            for summary, key in zip(summaries, keys, strict=True)
        ]
    )
    retriever.docstore.mset(list(zip(keys, pages, strict=True)))
    return [names(retriever.invoke(question)) for question in QUESTIONS]


def after():
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add(load())
    graph.create_node_group("summary", LLMExtractor(MODEL, prompt=PROMPT), num_workers=4)
    retriever = NodeGraphRetriever.from_graph(graph, group="summary")
    return [names(retriever.invoke(question)) for question in QUESTIONS]


if __name__ == "__main__":
    show(before, after)
