"""Let a model write the filters of LangChain's SelfQueryRetriever, whose operators all work."""

import json

from langchain_classic.retrievers import SelfQueryRetriever
from langchain_common import FIELDS, InMemoryFilter, Letters, ScriptedChat, load, names, show
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphVectorStore, StructuredFilter

FILTERS = {  # the filters that the scripted model writes for each question
    "Drinks before 1650?": 'and(eq("topic", "drink"), lt("year", 1650))',
    "Tea or bridges?": 'or(eq("topic", "building"), eq("year", 1610))',
    "What is no drink?": 'not(eq("topic", "drink"))',
}


def write(messages):
    asked = str(messages[-1].content).rpartition("Query:")[2]
    filter = next(filter for question, filter in FILTERS.items() if question in asked)
    return "```json\n" + json.dumps({"query": "", "filter": filter}) + "\n```"


def ask(store_class, translator):
    options = {"structured_query_translator": translator()}
    store, model = store_class.from_documents(load(), Letters()), ScriptedChat(reply=write)
    retriever = SelfQueryRetriever.from_llm(model, store, "Pages", FIELDS, **options)
    return [sorted(names(retriever.invoke(question))) for question in FILTERS]


def before():
    return ask(InMemoryVectorStore, InMemoryFilter)


def after():
    return ask(NodeGraphVectorStore, StructuredFilter)


if __name__ == "__main__":
    show(before, after)
