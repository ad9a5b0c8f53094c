"""What the LangChain programs in this folder share: documents, and models that need no key.

Put your own loader, your embedding model and your chat model in their place. ``show`` prints what
a program returns with LangChain's own classes, and what it returns with nodekin's.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

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


def load() -> list[Document]:
    """Return the pages as a loader would."""
    return [
        Document(
            text,
            metadata={"source": f"{name}.md", "year": YEARS[name], "topic": TOPICS[name]},
            id=name,
        )
        for name, text in PAGES.items()
    ]


class Letters(Embeddings):
    """Count pairs of letters, in place of an embedding model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        counts = [0.001] * 1024
        for one, two in pairwise(f" {text.lower()} "):
            counts[(ord(one) * 31 + ord(two)) % 1024] += 1
        return counts


class ScriptedChat(BaseChatModel):
    """Answer by a function of the prompt's messages, in place of a chat model."""

    reply: Callable[[list[BaseMessage]], str | AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "ScriptedChat":
        """Take tools; the script says which it calls."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        reply = self.reply(messages)
        message = reply if isinstance(reply, AIMessage) else AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=message)])


FACTS = ("Black tea is fermented", "Coffee is roasted", "The Nile is 6,650 km long", "Li Chun")


def read(messages: list[BaseMessage]) -> str:
    """Answer with the fact that the prompt has and that shares most words with the question."""
    text = "\n".join(str(message.content) for message in messages)
    question = {*text.lower().rpartition("question:")[2].replace("?", "").split()}
    known = [fact for fact in FACTS if fact in text]
    best = max(known, key=lambda fact: len(question & {*fact.lower().split()}), default=None)
    return "I don't know." if best is None else f"{best}."


def names(documents: list[Document]) -> list[str]:
    """Return where documents are from."""
    return [document.metadata["source"] for document in documents]


def show(before: Callable[[], Any], after: Callable[[], Any]) -> None:
    """Print what both forms of a program return."""
    print("LangChain:", before())
    print("nodekin:  ", after())
