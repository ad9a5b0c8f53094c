"""Documents and scripted models for the LangChain programs in this folder.

Replace them with your own loader, embedding model and chat model.
"""

import operator
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from langchain_classic.chains.query_constructor.schema import AttributeInfo
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.structured_query import Comparator, Operator, Visitor

PAGES = {
    "tea": (
        "Green tea is steamed. Black tea is fermented. Both come from leaves of one plant.\n\n"
        "Tea came to Europe in 1610, on Dutch ships. It was sold by chemists at first."
    ),
    "coffee": (
        "Coffee is roasted. It comes from beans, which are seeds of a cherry.\n\n"
        "Coffee houses opened in Vienna in 1685. Espresso is pressed through fine powder."
    ),
    "river": (
        "Rivers run to the sea. The Nile is 6,650 km long and crosses eleven countries.\n\n"
        "Salmon swim up rivers to spawn. Eels swim down to the sea for it."
    ),
    "bridge": (
        "The bridge of Zhaozhou is an arch of stone. Li Chun built it about the year 605.\n\n"
        "Its span is 37 metres. Small arches at its sides let floods through."
    ),
}
YEARS = {"tea": 1610, "coffee": 1685, "river": 1858, "bridge": 605}
TOPICS = {"tea": "drink", "coffee": "drink", "river": "nature", "bridge": "building"}


class FixedLLM(FakeListLLM):
    """A language model with fixed answers that counts every four characters as one token."""

    def get_num_tokens(self, text: str) -> int:
        return len(text) // 4


def load() -> list[Document]:
    """Return the English sample pages."""
    return [
        Document(
            text,
            metadata={"source": f"{name}.md", "year": YEARS[name], "topic": TOPICS[name]},
            id=name,
        )
        for name, text in PAGES.items()
    ]


def load_zh() -> list[Document]:
    """Return a Chinese sample page."""
    text = (
        "绿茶是不发酵的茶，杀青以后干燥。红茶是全发酵的茶，汤色红亮。红茶和绿茶的区别在于发酵。"
        "咖啡要烘焙。河流入海。赵州桥是石拱桥，李春主持建造。"
    )
    return [Document(text, metadata={"source": "茶.md"})]


class Letters(Embeddings):
    """An embedding model that counts pairs of letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        counts = [0.001] * 1024
        for one, two in pairwise(f" {text.lower()} "):
            counts[(ord(one) * 31 + ord(two)) % 1024] += 1
        return counts


class ScriptedChat(BaseChatModel):
    """A chat model whose answers are computed by a function of the messages."""

    reply: Callable[[list[BaseMessage]], str | AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "ScriptedChat":
        """Ignore the tools, because the script contains the name of the tool."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        reply = self.reply(messages)
        message = reply if isinstance(reply, AIMessage) else AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=message)])


class SharedWords(BaseCrossEncoder):
    """A cross-encoder that scores a text by the words it shares with the question."""

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:  # type: ignore[override]
        """Return the share of words in each text that also occur in the question."""
        pairs = [[{*re.findall(r"\w+", text.lower())} for text in pair] for pair in text_pairs]
        return [len(query & text) / len(text) for query, text in pairs]


FIELDS = [
    AttributeInfo(name="year", description="The year of the first report", type="integer"),
    AttributeInfo(name="topic", description="drink, nature or building", type="string"),
]

COMPARE = {"eq": operator.eq, "lt": operator.lt}


class InMemoryFilter(Visitor):
    """Translates structured queries to Python functions, for ``InMemoryVectorStore``."""

    allowed_comparators = tuple(Comparator)
    allowed_operators = tuple(Operator)

    def visit_operation(self, operation: Any) -> Any:
        """Return a function that evaluates ``and``, ``or`` or ``not``."""
        parts = [part.accept(self) for part in operation.arguments]
        if operation.operator == Operator.NOT:
            return lambda document: not parts[0](document)
        together = all if operation.operator == Operator.AND else any
        return lambda document: together(part(document) for part in parts)

    def visit_comparison(self, comparison: Any) -> Any:
        """Return a function that compares the value of a field."""
        test, limit = COMPARE[comparison.comparator.value], comparison.value
        return lambda document: test(document.metadata[comparison.attribute], limit)

    def visit_structured_query(self, structured_query: Any) -> Any:
        """Return the query and the keyword arguments for the search."""
        function = structured_query.filter.accept(self)
        return structured_query.query, {"filter": function}


FACTS = ("Black tea is fermented", "Coffee is roasted", "The Nile is 6,650 km long", "Li Chun")


def read(messages: list[BaseMessage]) -> str:
    """Return the fact in the prompt that shares the most words with the question."""
    text = "\n".join(str(message.content) for message in messages)
    question = {*text.lower().rpartition("question:")[2].replace("?", "").split()}
    known = [fact for fact in FACTS if fact in text]
    best = max(known, key=lambda fact: len(question & {*fact.lower().split()}), default=None)
    return "I don't know." if best is None else f"{best}."


def names(documents: list[Document]) -> list[str]:
    """Return the sources of documents."""
    return [document.metadata["source"] for document in documents]


def show(before: Callable[[], Any], after: Callable[[], Any]) -> None:
    """Print the results of a program before and after the migration."""
    print("LangChain:", before())
    print("nodekin:  ", after())
