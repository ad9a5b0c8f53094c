"""Tools for agents: search with a retriever and filters, or ask a query engine."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from keyword import kwlist
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langchain_core.tools.base import _is_injected_arg_type as is_injected
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SkipValidation,
    ValidationError,
    create_model,
)
from pydantic.v1 import ValidationError as ValidationErrorV1

from ...nodegraph.errors import EmbeddingError, ModelError
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.base_retriever import check_takes_filters
from ...retrievers.corpus_tools.tool_output import (
    ToolError,
    ToolOutput,
    ToolSession,
    in_line,
    quoted,
)
from ...retrievers.corpus_tools.toolset import CorpusTools
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.protocols import RerankError
from ..tool_filters import FilterError, FilterField, ToolArgument, ToolFilters
from .callbacks import child_config
from .documents import NODE_KEY
from .filter_translation import merge_filters
from .query_engine import NodeGraphQueryEngine
from .retriever import NodeGraphRetriever

T = TypeVar("T")

MakeConditions: TypeAlias = Callable[..., Mapping[str, Any]]
"""Returns the conditions of a run from its config, its LangGraph state or its ``ToolRuntime``."""

logger = logging.getLogger(__name__)

_RESERVED = ("callbacks", "config", "run_manager", "self")  # arguments of LangChain's own


def retriever_tool(
    retriever: BaseRetriever | Runnable[str, list[Document]],
    name: str,
    description: str,
    *,
    filter_by: Mapping[str, str | FilterField] | None = None,
    conditions: MakeConditions | None = None,
    show: Sequence[str] = (),
    nothing: str = "Nothing was found.",
) -> StructuredTool:
    """Make a tool of a ``NodeGraphRetriever``, for agents.

    LangChain's ``create_retriever_tool`` takes the retriever, too. Choose this one to let the model
    filter by metadata, to number the passages so that it can cite them, to mark each line of theirs
    so that none looks like another passage, and to get the documents with their scores and evidence
    beside its text: the ``artifact`` of the tool's message, in the order of the numbers.

    Args:
        retriever: The retriever, or what its ``configurable_fields`` returns. With ``filter_by`` or
            ``conditions`` one whose results can be filtered, as ``as_retriever`` says.
        name: The tool's name for the model.
        description: When the model should use it.
        filter_by: Metadata fields that the model may filter by, each with its description or a
            ``FilterField``. It gives one value or several, of which any may match. Texts match in
            upper and lower case, ``"1999"`` the number, too. Conditions of the retriever itself
            are added, and the model can't change them. A value that is not allowed is an error
            that the model reads.
        conditions: Returns the conditions of a run from its config, for an agent that many people
            use: ``lambda config: {"tenant": config["configurable"]["tenant"]}``. In LangGraph its
            argument may be annotated as those of tools are: ``ToolRuntime``, or
            ``Annotated[dict, InjectedState]``; the config is its argument ``config``. The model
            neither sees nor changes them. Where it raises, or returns none, or there is no such
            state, nothing is searched. A state is taken from LangGraph's ``ToolNode`` alone, as
            in ``create_agent``: where code of yours invokes the tool, that is a ``ValueError``.
        show: Metadata fields that the model sees with each passage.
        nothing: The text for the model if nothing was found.

    A value that is not allowed, and an embedder, a model or a server that is down, is a message
    that the model reads. Other errors end the agent's run.

    Raises:
        TypeError: If it is no LangChain retriever, or ``conditions`` can't be called like that.
        ValueError: If a field has the name of another argument, or the retriever can't be filtered.

    Example:
        >>> from nodekin.adapters.langchain import NodeGraphRetriever
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> texts = {"en": "Green tea is steamed.", "de": "Green means gruen."}
        >>> ids = graph.add([Document(text, {"language": key}) for key, text in texts.items()])
        >>> tool = retriever_tool(
        ...     NodeGraphRetriever(retriever=Retriever(graph, "ROOT")),
        ...     "search_tea",
        ...     "Search texts about tea.",
        ...     filter_by={"language": "de or en"},
        ...     show=["language"],
        ... )
        >>> print(tool.invoke({"query": "What is green?", "language": "en"}))
        [1] (language: en)
        | Green tea is steamed.
    """
    base = getattr(retriever, "default", retriever)  # of what configurable_fields returns
    if not isinstance(base, BaseRetriever):
        raise TypeError(
            f"retriever is a LangChain retriever, not {retriever!r:.80}; make one: "
            "NodeGraphRetriever(retriever=...)"
        )

    def output(documents: list[Document]) -> tuple[str, list[Document]]:
        passages = (
            in_line(f"[{number}]{_describe(document.metadata, show)}")
            + f"\n{quoted(document.page_content)}"
            for number, document in enumerate(documents, 1)
        )
        return "\n\n".join(passages) or nothing, documents

    if filter_by or conditions:
        native = as_retriever(base)
        check_takes_filters(native, "filter_by" if filter_by else "conditions")
        if not isinstance(base, NodeGraphRetriever):
            retriever = NodeGraphRetriever(retriever=native)
    argument = ("query", "What to look for, as a question or in keywords.")
    return _tool(retriever, name, description, argument, filter_by or {}, conditions, output)


def answer_tool(
    engine: QueryEngine | NodeGraphQueryEngine,
    name: str,
    description: str,
    *,
    filter_by: Mapping[str, str | FilterField] | None = None,
    conditions: MakeConditions | None = None,
    show: Sequence[str] = (),
) -> StructuredTool:
    """Make a tool of a query engine, for agents: a question in, an answer with its sources out.

    Choose ``retriever_tool`` where the agent's own model is to read the passages. This one where
    it needs answers only: they cost the agent less context, and each is written from the
    passages only, with citations.

    The model gets the answer and the sources that it cites. All sources, with the documents, are
    in the ``artifact`` of the tool's message: the mapping that ``NodeGraphQueryEngine`` returns
    with ``output="dict"``.

    Args:
        engine: The engine, or its ``NodeGraphQueryEngine``.
        name: The tool's name for the model.
        description: When the model should use it.
        filter_by: Metadata fields that the model may filter by. See ``retriever_tool``.
        conditions: Returns the conditions of a run. See ``retriever_tool``.
        show: Metadata fields that the model sees with each source.

    Raises:
        TypeError: If it is no engine.
        ValueError: If a field has the name of another argument, or the engine's retriever can't be
            filtered.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("The Nile is 6,650 km long.", {"page": 3}, id="rivers.md"))
        >>> engine = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "It has 6,650 km [1].")
        >>> tool = answer_tool(engine, "ask_atlas", "Answers about rivers.", show=["page"])
        >>> print(tool.invoke({"question": "How long is the Nile?"}))
        It has 6,650 km [1].
        <BLANKLINE>
        Sources:
        [1] rivers.md (page: 3)
    """
    if isinstance(engine, NodeGraphQueryEngine):
        runnable = engine.model_copy(update={"output": "dict"})
    elif isinstance(engine, QueryEngine):
        runnable = NodeGraphQueryEngine(engine=engine, output="dict")
    else:
        raise TypeError(
            f"engine is a QueryEngine(retriever, llm), not {engine!r:.80}; a retriever alone goes "
            "into retriever_tool"
        )

    def output(answer: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return _cite(answer, show), answer

    if filter_by or conditions:
        check_takes_filters(runnable.engine.retriever, "filter_by" if filter_by else "conditions")
    argument = ("question", "The question, complete in itself.")
    return _tool(runnable, name, description, argument, filter_by or {}, conditions, output)


def _tool(
    runnable: Runnable[str, T],
    name: str,
    description: str,
    argument: tuple[str, str],
    filter_by: Mapping[str, str | FilterField],
    conditions: MakeConditions | None,
    output: Callable[[T], tuple[str, T]],
) -> StructuredTool:
    """Make a tool that invokes a runnable with a text and a filter.

    Args:
        runnable: What the tool invokes, with the keyword ``filter``.
        name: The tool's name.
        description: When to use it.
        argument: The name and the description of the text.
        filter_by: Metadata fields with their descriptions.
        conditions: Returns the conditions of a run.
        output: Returns the text for the model, and the artifact.
    """
    key, _ = argument
    of_run = None if conditions is None else _Conditions(conditions, name, [key, *_RESERVED])
    injected = {} if of_run is None else of_run.injected
    reserved = [key, *_RESERVED, *injected]
    filters = ToolFilters(filter_by, reserved, [*dir(BaseModel), *kwlist])

    def options(values: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        of_framework = {name: values.pop(name, None) for name in injected}
        filter = filters.conditions(values)
        if of_run is not None:
            filter = merge_filters(of_run(of_framework, config), filter)
        return {} if filter is None else {"filter": filter}

    # A text by itself comes as an argument without a name.
    def call(
        *texts: str, config: RunnableConfig, callbacks: Callbacks = None, **kwargs: Any
    ) -> tuple[str, T]:
        with _as_message(name):
            chosen = options(kwargs, config)
            (text,) = texts or (kwargs[key],)
            return output(runnable.invoke(text, _of_child(config, callbacks), **chosen))

    async def acall(
        *texts: str, config: RunnableConfig, callbacks: Callbacks = None, **kwargs: Any
    ) -> tuple[str, T]:
        with _as_message(name):
            chosen = options(kwargs, config)
            (text,) = texts or (kwargs[key],)
            return output(await runnable.ainvoke(text, _of_child(config, callbacks), **chosen))

    return StructuredTool(
        name=name,
        description=description,
        func=call,
        coroutine=acall,
        args_schema=_arguments(name, argument, filters.arguments, injected),
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=_validation_message,
    )


def _of_child(config: RunnableConfig, callbacks: Callbacks) -> RunnableConfig:
    return {**child_config(config), "callbacks": callbacks}


@contextmanager
def _as_message(tool: str) -> Iterator[None]:
    """Let the model read what is wrong with a call, or that a model or a server is down."""
    try:
        yield
    except (FilterError, ToolError) as error:
        raise ToolException(str(error)) from error
    except (EmbeddingError, ModelError, RerankError, OSError) as error:
        logger.warning("the tool %s failed: %s", tool, error)
        message = f"{tool} failed, try again later: {type(error).__name__}: {error}"
        raise ToolException(message) from error


def _cite(answer: Mapping[str, Any], show: Sequence[str]) -> str:
    """Return the answer with the sources that it cites. With all, where it cites none."""
    sources = list(zip(answer["sources"], answer["context"], strict=True))
    if not answer["found"] or not sources:
        return str(answer["answer"])
    cited = [pair for pair in sources if pair[0]["cited"]] or sources
    lines = (
        in_line(
            f"[{source['number']}] {source['title'] or source['document_id'] or source['id']}"
            f"{_describe(document.metadata, show)}"
        )
        for source, document in cited
    )
    return f"{answer['answer']}\n\nSources:\n" + "\n".join(lines)


_SCALAR: Any = str | int | float | bool

_KINDS: Mapping[type[Any] | None, Any] = {
    int: int | float | str,
    float: int | float | str,
    bool: bool | str,
    str: str,
    date: str,
}


def _arguments(
    tool: str,
    argument: tuple[str, str],
    filters: Sequence[ToolArgument],
    injected: Mapping[str, tuple[Any, Any]],
) -> type[BaseModel]:
    """Return the schema of a tool's arguments: a text, and optional values to filter by.

    Those that LangGraph injects are in it, too, and are not shown to the model.
    """
    fields: dict[str, Any] = {argument[0]: (str, Field(description=argument[1]))}
    fields |= injected
    for item in filters:
        kind: Any = _SCALAR if item.field.values else _KINDS.get(item.field.type, _SCALAR)
        allowed = kind | None if item.bound is not None else kind | list[kind] | None
        fields[item.name] = (allowed, Field(default=None, description=item.description))
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return create_model(f"{tool}_arguments", __config__=config, **fields)


class _Conditions:
    """Call a function that returns the conditions of a run with the arguments that it has.

    What LangGraph injects reaches a tool among the arguments of the model's call, which are the
    model's where anything but LangGraph's ``ToolNode`` calls the tool. A ``ToolRuntime`` can't be:
    no model can write one. So the tool gets one, too, and without it nothing is searched.

    Attributes:
        injected: The annotations and defaults of what LangGraph injects, by its names.

    Raises:
        TypeError: If it can't be called so, or has an argument of a name in ``reserved``.
    """

    def __init__(self, conditions: MakeConditions, tool: str, reserved: Sequence[str]) -> None:
        self._conditions = conditions
        self._tool = tool
        signature = _signature(conditions)
        parameters = signature.parameters.values()
        injected = [item for item in parameters if _is_injected(item.annotation)]
        self.injected = {item.name: (item.annotation, ...) for item in injected}
        self._names = list(self.injected)
        self._of_config = [
            item.name
            for item in parameters
            if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
            and item not in injected
            and (item.name == "config" or _is_config(item.annotation))
        ]
        by_name = [*self._names, *self._of_config]
        try:
            signature.bind(*([] if by_name else [None]), **dict.fromkeys(by_name))
        except TypeError as error:
            raise TypeError(
                f"conditions={conditions!r:.80} takes the config of a run, or arguments that "
                f"LangGraph injects, by their names: {error}"
            ) from error
        for name in self._names:
            if name in reserved or name.startswith("_") or hasattr(BaseModel, name):
                raise TypeError(
                    f"conditions={conditions!r:.80} has an argument {name!r}, which is a name of "
                    "the tool or of LangChain; rename it"
                )
        if self._names:
            self._runtime = _add_runtime(self.injected)

    def __call__(self, values: Mapping[str, Any], config: RunnableConfig) -> Mapping[str, Any]:
        """Return the conditions of a run from what was injected into it, and its config.

        Raises:
            ValueError: If there are none, or nothing was injected.
        """
        if self._names and not isinstance(values[self._runtime], _tool_runtime()):
            raise ValueError(
                f"the tool {self._tool!r} has conditions of LangGraph's state, and was not called "
                f"by its ToolNode, so that {self._names} may be the model's; nothing was searched"
            )
        by_name = {name: values[name] for name in self._names}
        by_name |= dict.fromkeys(self._of_config, config)
        returned = self._conditions(**by_name) if by_name else self._conditions(config)
        if not returned:
            raise ValueError(
                f"conditions of the tool {self._tool!r} returned {returned!r} for a run, which "
                'would search everything; return what holds for it, such as {"tenant": "a"}'
            )
        return returned


def _signature(conditions: MakeConditions) -> inspect.Signature:
    """Return what a function takes: one argument, the config, where it does not say."""
    try:
        return inspect.signature(conditions, eval_str=True)
    except ValueError:
        return inspect.signature(lambda config: None)
    except Exception as error:  # whatever evaluating an annotation raises
        raise TypeError(
            f"the annotations of {conditions!r:.80} can't be read: {error}; import what they name "
            "outside of TYPE_CHECKING"
        ) from error


def _is_injected(annotation: Any) -> bool:
    try:
        return is_injected(annotation)
    except TypeError:  # list[int] in Python 3.10
        return False


def _is_config(annotation: Any) -> bool:
    return annotation is RunnableConfig or RunnableConfig in get_args(annotation)


def _add_runtime(injected: dict[str, tuple[Any, Any]]) -> str:
    """Return the name of the argument that is a ``ToolRuntime``; add one if there is none."""
    kind = _tool_runtime()
    for name, (annotation, _) in injected.items():
        if kind in (annotation, get_origin(annotation)):
            return name
    if "runtime" in injected:
        raise TypeError("an argument named runtime is LangGraph's ToolRuntime; rename it")
    # Each call would validate and dump it, with all of its state.
    unread = (SkipValidation, PlainSerializer(lambda runtime: None))
    injected["runtime"] = (Annotated[(kind, InjectedToolArg(), *unread)], None)
    return "runtime"


def _tool_runtime() -> type[Any]:
    try:
        from langgraph.prebuilt import ToolRuntime
    except ImportError as error:
        raise TypeError(
            "conditions of LangGraph's state require langgraph-prebuilt 1.0.2 or later: "
            f"pip install -U langgraph ({error})"
        ) from error
    return ToolRuntime


def _validation_message(error: ValidationError | ValidationErrorV1) -> str:
    """Return what is wrong with a model's arguments, for the model."""
    problems = {f"{item['loc'][0]}: {item['msg']}": None for item in error.errors() if item["loc"]}
    return f"The arguments are not allowed. {'; '.join(problems)}"


def _describe(metadata: Mapping[str, Any], show: Sequence[str]) -> str:
    """Return some metadata fields in parentheses. Nothing if there are none."""
    values = {name: metadata[name] for name in show if metadata.get(name) is not None}
    texts = (
        f"{name}: {value if isinstance(value, str) else json.dumps(value, default=str)}"
        for name, value in values.items()
        if name != NODE_KEY
    )
    return f" ({', '.join(texts)})" if values else ""


def corpus_toolkit(
    tools: CorpusTools, session: ToolSession | None = None, *, prefix: str = ""
) -> list[StructuredTool]:
    """Return the tools of a corpus as LangChain tools: search, grep, outline, read, related.

    Names, descriptions, arguments and texts are those of ``CorpusTools``, as by the Model Context
    Protocol. What is wrong with a call is a text for the model, which can do better. The
    ``artifact`` of a tool's message is the ``ToolOutput``, with the places as data.

    Args:
        tools: The tools.
        session: What the conversation has read, which is not shown again. One for each
            conversation. None to show everything each time.
        prefix: What the names begin with, where an agent has several corpora: ``"tea_"``.

    Raises:
        TypeError: If they are no ``CorpusTools``.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("Green tea is steamed.", id="tea.md"))
        >>> toolkit = corpus_toolkit(CorpusTools(graph))
        >>> [tool.name for tool in toolkit]
        ['search', 'grep', 'outline', 'read', 'related', 'cite']
        >>> print(toolkit[0].invoke({"query": "What is steamed?"}))
        tea.md [0:21]
        | Green tea is steamed.
    """
    if not isinstance(tools, CorpusTools):
        raise TypeError(f"tools are CorpusTools(graph), not {tools!r:.80}")
    return [_corpus_tool(tools, name, session, prefix) for name in tools.tools]


def _corpus_tool(
    tools: CorpusTools, name: str, session: ToolSession | None, prefix: str
) -> StructuredTool:
    tool = tools.tools[name]

    def call(**arguments: Any) -> tuple[str, ToolOutput]:
        with _as_message(name):
            output = tools.call(name, arguments, session=session)
            return output.text, output

    async def acall(**arguments: Any) -> tuple[str, ToolOutput]:
        with _as_message(name):
            output = await tools.acall(name, arguments, session=session)
            return output.text, output

    return StructuredTool(
        name=f"{prefix}{name}",
        description=tool.description,
        args_schema={**tool.parameters, "title": name, "description": tool.description},
        func=call,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
