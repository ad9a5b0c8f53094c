"""Take a question apart, and ask each part of the tool that a model chooses for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

from ...nodegraph.errors import nearest_names
from ..composite.fusion import FusionRetriever
from ..filters import Filters
from ..foreign.outputs import is_answer
from ..plans.effects import gather, results_or_errors
from ..plans.plan import Plan
from ..plans.prompting import PromptReplacement
from ..protocols import RetrieverProtocol
from ..ranking import Mode
from ..results import OutputFormat, Results, ScoredNode
from .named_tools import Tools, named_tools
from .outcome import SubResults
from .sub_question import SubQuestionRetriever
from .tool_decomposition import ToolDecomposition, ToolDecompositionOptions, split_tool_question
from .transform_retriever import VariantResults, Variants

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _ResultOptions(TypedDict, total=False):
    output_format: OutputFormat | None
    join: bool | str


class ToolQuestionOptions(ToolDecompositionOptions, _ResultOptions, total=False):
    """The options of ``ToolQuestionRetriever`` that are not named in its signature."""


class ToolQuestionRetriever(SubQuestionRetriever):
    """Let a model split a question, and ask each part of the tool that it chooses for the part.

    Choose it over ``SubQuestionRetriever`` where the parts are answered from different places: a
    retriever for each corpus, a query engine for each document, of any framework. A ``Retriever``
    finds passages; a query engine's answer is one passage, with its question as title and the
    evidence of its sources, so that whoever answers the whole question answers from it.

    All parts are asked at once. A part whose tool fails or does not exist is told as ``error`` in
    what ``grouped`` returns, and in the evidence of the others; if all fail, the first error is
    raised. Where the model can't be used, the question goes to all tools.

    Args:
        tools: By name, retrievers and query engines of any framework, or pairs of a description
            and one; or a list of tools of LangChain or LlamaIndex. Names and descriptions are what
            the model chooses by.
        llm: The model, in any form that ``LLM`` takes.
        answers: Whether the model answers the parts for which a retriever finds passages, too.
        answer_llm: The model for that; None for the same.
        answer_prompt: In place of the built-in one: a text with ``{query}`` and ``{context}``.
        mode: How results are fused; see ``fuse``.
        top_k: How many results at most, of each tool and of all; None for the tools' own numbers,
            and all results of all.
        **options: ``output_format`` and ``join``; all others are those of ``ToolDecomposition``:
            ``limit`` (of questions), ``prompt``, ``language``, ``on_error``, ``retries``,
            ``timeout``.

    Raises:
        TypeError: If a tool is no retriever, or there is no model.
        ValueError: If there are no tools, or two have one name.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import QueryEngine, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile has 6,650 km.", "Green tea is steamed."])
        >>> passages = Retriever(graph, "ROOT", top_k=1)
        >>> tools = {
        ...     "rivers": ("All about rivers", QueryEngine(passages, lambda prompt: "6,650 km.")),
        ...     "teas": ("All about tea", passages),
        ... }
        >>> model = lambda prompt: "rivers: How long is the Nile?\\nteas: How is green tea made?"
        >>> retriever = ToolQuestionRetriever(tools, model)
        >>> for part in retriever.grouped("How long is the Nile, and how is green tea made?"):
        ...     print(part.tool, "|", part.question, "|", part.results[0].node.text)
        rivers | How long is the Nile? | 6,650 km.
        teas | How is green tea made? | Green tea is steamed.

    Source:
        LlamaIndex's ``SubQuestionQueryEngine``, which leaves out in silence what fails.
    """

    name = "tool questions"
    transform_type = ToolDecomposition

    def __init__(
        self,
        tools: Tools,
        llm: object,
        *,
        answers: bool = False,
        answer_llm: object = None,
        answer_prompt: PromptReplacement | None = None,
        mode: Mode = "relative",
        top_k: int | None = None,
        **options: Unpack[ToolQuestionOptions],
    ) -> None:
        self.tools = named_tools(tools)
        output = {
            "output_format": options.pop("output_format", None),
            "join": options.pop("join", False),
        }
        descriptions = {name: tool.description for name, tool in self.tools.items()}
        retrievers = [tool.retriever for tool in self.tools.values()]
        super().__init__(
            FusionRetriever(retrievers, "relative", on_error="skip"),
            ToolDecomposition(llm, descriptions, **options),  # type: ignore[misc]
            answers=answers,
            answer_llm=answer_llm,
            answer_prompt=answer_prompt,
            mode=mode,
            top_k=top_k,
            **output,  # type: ignore[arg-type]
        )

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The tools."""
        return [(name, tool.retriever) for name, tool in self.tools.items()]

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        changed = {
            name: replace(self.tools[name], retriever=retriever)
            for name, retriever in retrievers.items()
        }
        self.tools = {**self.tools, **changed}
        if isinstance(self.inner, FusionRetriever):
            branches = enumerate(self.tools)
            self.inner = self.inner.with_inner_retrievers(
                {str(number): retrievers[name] for number, name in branches if name in changed}
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.tools)!r})"

    def search_variants(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> Plan[list[list[VariantResults]]]:
        """Ask the tools their questions, all at once, each tool all of its own together."""
        parts = [
            [split_tool_question(text, self.tools) for text in group.queries]
            for _, group in variants
        ]
        questions = {
            name: list(dict.fromkeys(q for group in parts for tool, q in group if tool == name))
            for name in self.tools
        }
        asked = [name for name, own in questions.items() if own]
        outcomes = yield from gather(
            [
                results_or_errors(self.tools[name].retriever, questions[name], limit, filters)
                for name in asked
            ]
        )
        results: dict[tuple[str, str], Results | Exception] = {}
        for name, of_tool in zip(asked, outcomes, strict=True):
            results.update(zip(((name, q) for q in questions[name]), of_tool, strict=True))
        rankings = [[self._tool_results(*part, results) for part in group] for group in parts]
        for (query, _), ranking in zip(variants, rankings, strict=True):
            self.check_failures(query, ranking)
        return (yield from self.complete_parts(variants, rankings, limit))

    def fuse_variants(
        self, query: str, note: str | None, rankings: Sequence[VariantResults], limit: int | None
    ) -> list[ScoredNode]:
        """Return one ranking for a query; all results without a limit, as tools differ."""
        count = sum(len(ranking.results) for ranking in rankings)
        return super().fuse_variants(query, note, rankings, limit or count or None)

    def fuse_groups(
        self, query: str, groups: Sequence[SubResults], *, top_k: int | None = None
    ) -> list[ScoredNode]:
        """Return the results that ``grouped`` returned for a query as one ranking."""
        count = sum(len(group.results) for group in groups)
        limit = self.top_k if top_k is None else top_k
        return super().fuse_groups(query, groups, top_k=limit or count or None)

    def _tool_results(
        self,
        name: str,
        question: str,
        results: dict[tuple[str, str], Results | Exception],
    ) -> VariantResults:
        """Return what a tool returned for a question; of a query engine also the answer."""
        if name not in self.tools:
            unknown = LookupError(
                f"there is no tool {name!r}; there is {nearest_names(name, self.tools)}"
            )
            return VariantResults(question, [], unknown, tool=name)
        outcome = results[name, question]
        if isinstance(outcome, Exception):
            return VariantResults(question, [], outcome, tool=name)
        ranking = VariantResults(question, outcome, tool=name)
        answered = outcome and is_answer(outcome[0])
        return replace(ranking, answer=outcome[0].node.text) if answered else ranking
