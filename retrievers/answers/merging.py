"""Make sources of results: the same text once, overlapping spans of a document as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...nodegraph import Node
from ..scored_node import ScoredNode
from .answer import LeftOut, Source


def merged(
    results: Sequence[ScoredNode],
    title: Callable[[Node], str],
    fits: Callable[[Source], bool],
) -> tuple[list[Source], list[LeftOut]]:
    """Return the sources that results make, best first, and the results that add nothing.

    Every result is in a source (as its result, or one of those merged into it) or is left out:
    because it has no text, the text of a better one, or because a better one contains it. Spans
    of one document that overlap become one source in the place of the best of them, if that fits.

    Args:
        results: Best first.
        title: What stands above a passage.
        fits: Whether a model could be shown so long a source.
    """
    left_out: list[LeftOut] = []
    sources: list[Source] = []
    first_with: dict[str, ScoredNode] = {}
    for result in results:
        text = text_of(result)
        owner = first_with.setdefault(text.strip(), result)
        if not text.strip():
            left_out.append(LeftOut(result, "empty"))
        elif owner is not result:
            left_out.append(LeftOut(result, "duplicate", owner))
        else:
            made = Source(0, result, text, title=title(result.node))
            _add(made, sources, left_out, fits)
    return sources, left_out


def text_of(result: ScoredNode) -> str:
    """Return what a result has to tell: its node's content, as a text."""
    content = result.node.content
    return content if isinstance(content, str) else str(content)


def _add(
    made: Source,
    sources: list[Source],
    left_out: list[LeftOut],
    fits: Callable[[Source], bool],
) -> None:
    """Add a source, or join it to one that it overlaps; and that one to others, if it now does."""
    at = len(sources)
    sources.append(made)
    while (pair := _overlapping(at, sources, fits)) is not None:
        first, second, joint = pair
        gone = sources.pop(second)
        if joint.text == sources[first].text and not gone.merged:
            left_out.append(LeftOut(gone.result, "contained", sources[first].result))
        else:
            sources[first] = joint
        at = first


def _overlapping(
    at: int, sources: Sequence[Source], fits: Callable[[Source], bool]
) -> tuple[int, int, Source] | None:
    """Return a source that can be joined with that at a place: both places, and the two as one."""
    for other in range(len(sources)):
        first, second = min(at, other), max(at, other)
        joint = None if first == second else _joint(sources[first], sources[second])
        if joint is not None and fits(joint):
            return first, second, joint
    return None


def _joint(first: Source, second: Source) -> Source | None:
    """Return one source for two whose spans overlap, in the place of the first."""
    one, two = span_of(first), span_of(second)
    if one is None or two is None or _document(first) != _document(second):
        return None
    if max(one[0], two[0]) >= min(one[1], two[1]):
        return None
    (early, at), (late, then) = sorted(((first, one), (second, two)), key=lambda item: item[1])
    text = early.text + late.text[at[1] - then[0] :]
    gained = (*first.merged, second.result, *second.merged)
    return replace(first, text=text, merged=gained, title=early.title)


def span_of(source: Source) -> tuple[int, int] | None:
    """Return where a source's text stands in its document; None where it is no part of it."""
    spans = [_span(result.node) for result in (source.result, *source.merged)]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    return min(begin for begin, _ in known), max(end for _, end in known)


def _span(node: Node) -> tuple[int, int] | None:
    if node.start is None or node.end is None or not node.document_id:
        return None
    cut_out = node.content == node.text and node.end - node.start == len(node.text)
    return (node.start, node.end) if cut_out else None


def _document(source: Source) -> tuple[int, str]:
    return id(source.result.node.graph), source.result.node.document_id
