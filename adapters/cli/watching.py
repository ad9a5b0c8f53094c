"""Wait for changes of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..extras import extra


def changes(sources: Sequence[Path]) -> Iterator[None]:
    """Yield whenever something below the sources has changed, and it has been quiet since.

    Changes in hidden files and folders, such as the index itself, don't count.

    Raises:
        ImportError: If the library that tells changes is not installed.
    """
    with extra("files", "watchfiles"):
        from watchfiles import watch
    roots = [source.absolute() for source in sources]

    def counts(_: object, path: str) -> bool:
        return any(_is_visible(Path(path), root) for root in roots)

    for _ in watch(*roots, watch_filter=counts, debounce=1600, step=200):
        yield


def _is_visible(path: Path, root: Path) -> bool:
    """Tell whether a path is a source, or lies in one and is not hidden there."""
    if path == root:
        return True
    if root not in path.parents:
        return False
    names = path.relative_to(root).parts
    return not any(name.startswith(".") for name in names) or names[-1].endswith("ignore")
