"""Run programs with a LangChain class and with a nodekin class, and compare results and events."""

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore
from support.letters import Letters

TEXTS = [
    "Green tea is steamed soon after picking.",
    "Black tea is fermented and dried.",
    "Oolong tea is half fermented.",
    "White tea is only dried.",
    "Coffee is roasted at two hundred degrees.",
    "Rivers run to the sea.",
    "A printing press prints books about rivers.",
]
DOCUMENTS = [
    Document(text, id=f"d{n}", metadata={"n": n, "source": f"{n}.md", "tags": ["a", "b"]})
    for n, text in enumerate(TEXTS)
]
QUESTIONS = ["Which tea is steamed?", "Which tea is fermented?", "Where do rivers run?"]
PROMPT = ChatPromptTemplate.from_template("Answer from {context}: {input}")

OURS = {
    "NodeGraphVectorStore": "InMemoryVectorStore",
    "NodeGraphRetriever": "VectorStoreRetriever",
}
"""The names of nodekin classes, with the names of the LangChain classes that they replace."""


def renamed(name):
    """Replace names of nodekin classes in the name of a run with names of LangChain classes."""
    for ours, theirs in OURS.items():
        name = name and name.replace(ours, theirs)
    return name


def from_store(cls):
    """Return a function that creates a retriever for a vector store of the given class."""

    def make(documents=DOCUMENTS, k=3, embedding=None):
        store = cls.from_documents(documents, embedding or Letters())
        return store.as_retriever(search_kwargs={"k": k})

    return make


def from_retriever(documents=DOCUMENTS, k=3, embedding=None):
    model = embedding or Letters()
    return NodeGraphRetriever.from_documents(documents, model, similarity="cosine", k=k)


THEIRS = from_store(InMemoryVectorStore)
RETRIEVERS = {"store": from_store(NodeGraphVectorStore), "retriever": from_retriever}


class Events(BaseCallbackHandler):
    """A callback handler that records the names, runs, nesting and payload keys of events.

    Runs below a nodekin retriever are not recorded, because they represent its stages. LangChain's
    retrievers have no such runs.
    """

    run_inline = True

    def __init__(self):
        self.records = []
        self._paths = {}
        self._stages = set()

    def _start(self, event, serialized, inputs, *, run_id, parent_run_id=None, **payload):
        name = payload.get("name") or (serialized or {}).get("name")
        above = self._paths.get(parent_run_id, ())
        self._paths[run_id] = (*above, renamed(name))
        if parent_run_id in self._stages or name == "NodeGraphRetriever":
            self._stages.add(run_id)
            if parent_run_id in self._stages:
                return
        self._record(event, run_id, inputs, payload)

    def _end(self, event, output, *, run_id, parent_run_id=None, **payload):
        if parent_run_id not in self._stages:
            self._record(event, run_id, output, payload)

    def _record(self, event, run_id, value, payload):
        keys = sorted(value) if isinstance(value, dict) else type(value).__name__
        if isinstance(value, BaseException):  # the classes of errors are different
            keys = "error"
        self.records.append((self._paths[run_id], event, str(keys), tuple(sorted(payload))))


def _recorder(event):
    def record(self, *arguments, **payload):
        if event.endswith("start"):
            self._start(event, *arguments, **payload)
        else:
            self._end(event, *arguments, **payload)

    return record


for _name in ("chain", "retriever", "tool", "llm"):
    for _when in ("start", "end", "error"):
        setattr(Events, f"on_{_name}_{_when}", _recorder(f"{_name} {_when}"))
Events.on_chat_model_start = _recorder("chat model start")


def shaped(value):
    """Convert a result to plain values.

    Documents and messages are represented by their type, id, text and metadata.
    """
    if isinstance(value, Document):
        return type(value).__name__, value.id, value.page_content, list(value.metadata.items())
    if isinstance(value, BaseMessage):
        return type(value).__name__, value.content, shaped(getattr(value, "artifact", None))
    if isinstance(value, dict):
        return {name: shaped(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [shaped(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def outcome(program, make):
    """Return the result of a program and its events, sorted because parallel runs have no order."""
    events = Events()
    result = program(make, {"callbacks": [events]})
    return shaped(result), sorted(events.records)


def check(program, theirs, ours):
    """Check that a program has the same results and events with both classes."""
    expected, expected_events = outcome(program, theirs)
    found, found_events = outcome(program, ours)
    assert expected
    assert found == expected
    assert found_events == expected_events


def model(*answers):
    """Return a chat model that returns the given answers.

    When streaming, it splits them into words.
    """
    return GenericFakeChatModel(messages=iter([AIMessage(answer) for answer in answers * 9]))


def joined(documents):
    return "\n".join(document.page_content for document in documents)
