"""Call a function in another process, which may ask its caller for what the caller has.

A message has one reply: a result, an error, or a question, whose answer is the next message. So
a pipe can carry it as well as a method of an actor.
"""

from __future__ import annotations

import io
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

from ..concurrency import context_value
from ..document import flatten
from ..models.answer_cache import Answers, keep_answers
from ..node import Kin, KinReader, Node

Exchange = Callable[[bytes], bytes]
"""Sends a message to a process, and returns its reply."""

Message = tuple[Any, ...]


_sending: ContextVar[bool] = ContextVar("a function is sent to a process", default=False)


def is_sending() -> bool:
    """Return whether a function is being pickled that another process is to call."""
    return _sending.get()


def function_to_bytes(function: object) -> bytes:
    """Pickle a function for another process, and with it no graph."""
    with context_value(_sending, True):
        return to_bytes(function)


def to_bytes(value: object) -> bytes:
    """Pickle a value: functions and classes of the main program, and lambdas, by their code."""
    with suppress(Exception):  # what pickle can't, cloudpickle may, or tells why it can't
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        if b"__main__" not in data:
            return data
    import cloudpickle

    pickled: bytes = cloudpickle.dumps(value)
    return pickled


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a process sent more than plain data: {module}.{name}")


def plain_loads(data: bytes) -> Any:
    """Read pickled texts, numbers, lists and the like. Nothing that was sent is executed.

    Raises:
        UnpicklingError: If there is anything else.
    """
    return _PlainUnpickler(io.BytesIO(data)).load()


class RemoteTraceback(Exception):
    """The traceback in another process, as the ``__cause__`` of the error here."""

    def __str__(self) -> str:
        return f"in another process:\n\n{self.args[0]}"


# The caller's side


def converse(
    exchange: Exchange,
    message: Message,
    caller: Any = None,
    answers: Answers | None = None,
    loads: Callable[[bytes], Any] = pickle.loads,
) -> Any:
    """Send a message to a process, answer what it asks, and return the result.

    Args:
        exchange: Reaches the process.
        message: ``("load", key, function)`` as bytes, or ``("call", key, argument)``.
        caller: What the process may call methods of: the graph of the nodes that are sent.
        answers: What models have answered before, and where new answers are kept.
        loads: Reads what the process sends.

    Raises:
        BaseException: What the function raised, with a ``RemoteTraceback``.
    """
    reply: Message = loads(exchange(to_bytes(message)))
    while reply[0] == "question":
        try:
            message = ("value", _answer(exchange, reply[1:], caller, answers))
        except Exception as error:
            message = _error_message(error)
        reply = loads(exchange(to_bytes(message)))
    return _value_of(reply, loads)


def _answer(exchange: Exchange, question: Message, caller: Any, answers: Answers | None) -> Any:
    """Return what a process asks for."""
    about, name, *arguments = question
    if about == "answer":  # of a model: if nobody has it, the process asks the model
        call = partial(converse, exchange, ("yours",), caller, answers)
        return call() if answers is None else answers.ask(name, call)
    if caller is None:
        raise ValueError("the node belongs to no graph, so it has no kin")
    args, settings = _attached(arguments, caller)
    if name == "find":
        group, nodes = args
        return caller.find(group)(nodes)
    if name == "reading":  # no state is held: what is made of an old one is dropped
        with caller.reader.reading(*args):
            return None
    if name == "lineage":  # a group's transform stays here
        return [GroupName(group.name, group.by_span) for group in caller.reader.lineage(*args)]
    if name.startswith("_"):
        raise AttributeError(f"{name!r} is private")
    asked = caller.reader if hasattr(getattr(caller, "reader", None), name) else caller
    return getattr(asked, name)(*args, **settings)


@dataclass(frozen=True, slots=True)
class GroupName:
    """Say of a group what a node's kin are found by."""

    name: str
    by_span: bool


def _error_message(error: BaseException) -> Message:
    """Return what an error can be raised from, also where its class is not known."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    pickled = None
    with suppress(Exception):
        pickled = to_bytes(error)
        pickle.loads(pickled)
    return "error", pickled, type(error).__name__, str(error), trace


def _value_of(reply: Message, loads: Callable[[bytes], Any] = pickle.loads) -> Any:
    """Return what a reply brings, or raise the error that it brings."""
    kind, *values = reply
    if kind != "error":
        return values[0]
    pickled, name, text, trace = values
    error: BaseException | None = None
    with suppress(Exception):
        error = None if pickled is None else loads(pickled)
    if error is None:
        error = cast("BaseException", type(name, (RuntimeError,), {})(text))
    error.__cause__ = RemoteTraceback(trace)
    raise error


def _attached(value: Any, graph: Any) -> Any:
    """Let the nodes in a value know their graph, which they travel without."""
    if isinstance(value, Node):
        if value.graph is None:
            object.__setattr__(value, "graph", graph)
    elif isinstance(value, Mapping):
        for item in value.values():
            _attached(item, graph)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            _attached(item, graph)
    return value


# The process's side


def ask_caller(method: str, *args: Any) -> Any:
    """Call a method of the object that the caller of this function has for it."""
    return _serving.get().ask(method, *args)


class CallServer:
    """Call functions for another process, one call at a time.

    Args:
        receive: Returns the next message, None at the end.
        send: Sends a reply.
    """

    def __init__(
        self, receive: Callable[[], bytes | None], send: Callable[[bytes], object]
    ) -> None:
        self._receive = receive
        self._send = send
        self._functions: dict[str, Callable[[Any], Any]] = {}
        self._graph = RemoteGraph(self)
        self.lock = threading.RLock()  # of a conversation: a function may have threads of its own

    def serve(self) -> None:
        """Answer messages until they end."""
        _serving.set(self)
        with keep_answers(_RemoteAnswers(self)):
            while (message := self._receive()) is not None:
                self._send(self._reply(message))

    def _reply(self, message: bytes) -> bytes:
        try:
            kind, key, value = pickle.loads(message)
            if kind == "call":
                result = self._functions[key](_attached(value, self._graph))
                return to_bytes(("value", result))
            try:
                self._functions[key] = pickle.loads(value)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise RuntimeError(f"the process can't load it: {reason}") from error
            return to_bytes(("value", None))
        except BaseException as error:  # a transform may even raise SystemExit, as it may there
            return to_bytes(_error_message(error))

    def exchange(self, message: Message) -> Message:
        """Send a message and return the next one."""
        self._send(to_bytes(message))
        data = self._receive()
        if data is None:
            raise EOFError("the process that called has ended")
        reply: Message = pickle.loads(data)
        return reply

    def ask(self, method: str, *args: Any, **settings: Any) -> Any:
        """Return what a method of the caller's graph returns."""
        with self.lock:
            reply = self.exchange(("question", "graph", method, args, settings))
        return _attached(_value_of(reply), self._graph)


_serving: ContextVar[CallServer] = ContextVar("the server of this process")


class _RemoteAnswers:
    """Look up models' answers at the caller, who keeps each as soon as it is there."""

    def __init__(self, server: CallServer) -> None:
        self._server = server

    def ask(self, key: str, call: Callable[[], Any]) -> Any:
        with self._server.lock:
            reply = self._server.exchange(("question", "answer", key))
            if reply[0] == "yours":
                try:
                    answer = call()
                except BaseException as error:
                    self._server.exchange(_error_message(error))  # which comes back
                    raise
                reply = self._server.exchange(("value", answer))
        return _value_of(reply)  # an error where the answer could not be kept


class _Remote:
    """Ask the caller for what a protocol names, and a little more."""

    protocol: ClassVar[type]
    others: ClassVar[tuple[str, ...]]
    called: ClassVar[str]
    """What errors call it."""

    def __init__(self, server: CallServer) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self.others and (name.startswith("_") or not hasattr(self.protocol, name)):
            raise AttributeError(
                f"a transform that runs in another process has no {self.called}.{name}; it has a "
                "node's kin, links and embedding, and graph.nodes, find, neighbours"
            )
        return partial(self._server.ask, name)


class _RemoteReader(_Remote):
    """Ask the reader of the caller's graph."""

    protocol, called = KinReader, "graph.reader"
    others = ("document_ids", "links_of", "nodes_by_id")

    @contextmanager
    def reading(self, *groups: str) -> Iterator[None]:
        """Have the groups built."""
        self._server.ask("reading", *groups)
        yield


class RemoteGraph(_Remote):
    """Ask the graph of the caller for the kin of nodes."""

    protocol, called = Kin, "graph"
    others = ("neighbours", "nodes")

    def __init__(self, server: CallServer) -> None:
        super().__init__(server)
        self.reader = _RemoteReader(server)

    def find(self, group: str) -> Callable[[Any], list[Node]]:
        """Return a function that takes nodes to their kin in a group."""
        return lambda nodes: self._server.ask("find", group, [*flatten(nodes)])
