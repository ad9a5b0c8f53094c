"""RAG fusion: a model writes several queries, and what they find is fused by its ranks.

After: two steps in place of a chain and a function of one's own.
"""

from langchain_common import Letters, ScriptedChat, load, names, show
from langchain_core.load import dumps
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever, fuse_documents, transform_query

QUESTION = "What do people drink?"
PROMPT = ChatPromptTemplate.from_template("Write three search queries about: {question}")
QUERIES = "black tea that is fermented\nespresso and coffee houses\ndrinks from leaves or beans"
MODEL = ScriptedChat(reply=lambda messages: QUERIES)


def before():
    def fuse(lists, constant=60):
        scores, by_key = {}, {}
        for documents in lists:
            for rank, document in enumerate(documents):
                key = dumps(document)
                by_key[key] = document
                scores[key] = scores.get(key, 0) + 1 / (rank + constant)
        return [by_key[key] for key in sorted(scores, key=scores.get, reverse=True)]

    retriever = InMemoryVectorStore.from_documents(load(), Letters()).as_retriever()
    queries = PROMPT | MODEL | StrOutputParser() | (lambda text: text.split("\n"))
    chain = queries | retriever.map() | fuse
    return names(chain.invoke({"question": QUESTION}))


def after():
    retriever = NodeGraphRetriever.from_documents(load(), Letters(), group="ROOT")
    queries = transform_query(MODEL, "expand", prompt=PROMPT, include_query=False)
    return names((queries | retriever.map() | fuse_documents()).invoke(QUESTION))


if __name__ == "__main__":
    show(before, after)
