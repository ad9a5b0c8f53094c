"""Let a model write a filter for the question, and search what meets it.

After: the vector store, and ``StructuredFilter``, which translates every comparator and operator;
what stores in memory have no translator for is written by hand before.
"""

import json
from operator import eq, ge, gt, le, lt, ne

from langchain_classic.chains.query_constructor.schema import AttributeInfo
from langchain_classic.retrievers import SelfQueryRetriever
from langchain_common import Letters, ScriptedChat, load, names, show
from langchain_core.structured_query import Comparator, Operator, Visitor
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphVectorStore, StructuredFilter

FILTERS = {  # what a model writes for each question; the query may be empty
    "Drinks before 1650?": ("drinks", 'and(eq("topic", "drink"), lt("year", 1650))'),
    "Anything since 1685?": ("", 'gte("year", 1685)'),
    "Tea or bridges?": ("", 'or(eq("topic", "building"), eq("year", 1610))'),
    "All but drinks: what is long?": ("long", 'ne("topic", "drink")'),
    "What is neither a drink nor old?": ("sea", 'not(or(eq("topic", "drink"), lt("year", 900)))'),
    "Rivers or coffee?": ("fish", 'in("topic", ["nature", "drink"])'),
}
FIELDS = [
    AttributeInfo(name="year", description="When it was first told of", type="integer"),
    AttributeInfo(name="topic", description="drink, nature or building", type="string"),
]


def write_filter(messages):
    question = next(q for q in FILTERS if q in str(messages[-1].content).rpartition("Query:")[2])
    query, condition = FILTERS[question]
    return "```json\n" + json.dumps({"query": query, "filter": condition}) + "\n```"


COMPARE = {"eq": eq, "ne": ne, "gt": gt, "gte": ge, "lt": lt, "lte": le}
COMPARE["in"] = lambda value, values: value in values


class AsFunction(Visitor):
    """Translate a filter to what ``InMemoryVectorStore`` takes: a function."""

    allowed_comparators = tuple(Comparator)
    allowed_operators = tuple(Operator)

    def visit_operation(self, operation):
        parts = [part.accept(self) for part in operation.arguments]
        if operation.operator == Operator.NOT:
            return lambda document: not parts[0](document)
        together = all if operation.operator == Operator.AND else any
        return lambda document: together(part(document) for part in parts)

    def visit_comparison(self, comparison):
        test, limit = COMPARE[comparison.comparator.value], comparison.value
        return lambda document: test(document.metadata[comparison.attribute], limit)

    def visit_structured_query(self, query):
        return query.query, {"filter": query.filter.accept(self)} if query.filter else {}


def ask(store, translator):
    retriever = SelfQueryRetriever.from_llm(
        ScriptedChat(reply=write_filter),
        store,
        "Pages about many things",
        FIELDS,
        structured_query_translator=translator,
    )
    return [sorted(names(retriever.invoke(question))) for question in FILTERS]


def before():
    return ask(InMemoryVectorStore.from_documents(load(), Letters()), AsFunction())


def after():
    return ask(NodeGraphVectorStore.from_documents(load(), Letters()), StructuredFilter())


if __name__ == "__main__":
    show(before, after)
