"""What a retrieval returns: a node, its score, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass

from ..nodegraph import Node


@dataclass(frozen=True, slots=True)
class QueryForm:
    """Tell what a strategy was given, where it searched for something else.

    Attributes:
        query: What it was given to look for.
        strategy: Its name: ``"rewrite"``, ``"hyde"``, ``"multi-step"``.
        note: What went wrong, or what else is to be known: a model that failed, a partial answer.
    """

    query: str
    strategy: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Tell one way a node was found.

    Attributes:
        node: The node that matched: the result itself, or one of its kin in a smaller group.
        score: The score of that match.
        similarity: The name of the similarity, or of the reranker, that gave it.
        query: The form of the query that was searched for.
        embed_key: Which embedding of the graph was compared; None where texts were.
        share: What the retriever that found it gave to the result's score, where several were
            fused.
        forms: The earlier forms of the query where strategies changed it, the user's first.
    """

    node: Node
    score: float
    similarity: str
    query: str
    embed_key: str | None = None
    share: float | None = None
    forms: tuple[QueryForm, ...] = ()

    @property
    def group(self) -> str:
        """The group in which the match was found."""
        return self.node.group


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """Hold a node, its score (higher is better) and its evidence, the best match first."""

    node: Node
    score: float
    evidence: tuple[Evidence, ...] = ()

    def explain(self) -> str:
        """Return in words how the node was found: a line for the result, one for each match.

        Example:
            >>> from nodekin.nodegraph import NodeGraph
            >>> from nodekin.retrievers import Retriever
            >>> graph = NodeGraph()
            >>> ids = graph.add("Green tea. Black tea.")
            >>> graph.create_node_group("sentence", lambda text: text.split(". "))
            >>> (result,) = Retriever(graph, "sentence", "bm25", target="ROOT")("green")
            >>> print(result.explain())
            0.6931  ROOT  "Green tea. Black tea."
              0.6931  sentence  bm25 for "green": "Green tea"
        """
        lines = [f"{self.score:.4f}  {self.node.group}  {_quoted(self.node.text)}"]
        for match in self.evidence:
            key = "" if match.embed_key is None else f" ({match.embed_key})"
            share = "" if match.share is None else f", which gave {match.share:.4f}"
            found = "itself" if match.node == self.node else _quoted(match.node.text)
            lines.append(
                f"  {match.score:.4f}  {match.group}  {match.similarity}{key} for "
                f"{_quoted(match.query)}: {found}{share}"
            )
            lines += [f"    {_told(form)}" for form in reversed(match.forms)]
        return "\n".join(lines)


def _told(form: QueryForm) -> str:
    note = "" if form.note is None else f" ({form.note})"
    return f"{form.strategy} of {_quoted(form.query)}{note}"


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= 60 else f'"{line[:57]}..."'
