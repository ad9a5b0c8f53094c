"""Detect files that changed after an index was last updated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from ..nodegraph.readers.folder_scan import scan_files


def newer_files(sources: Iterable[Path], updated: float, *, is_copy: bool = False) -> int:
    """Count the files that were changed, added or moved after the last update of an index.

    Args:
        sources: The files and folders that were indexed.
        updated: The time of the last update, in seconds since 1970.
        is_copy: Whether the index and the files were copied together, for example into a container
            image. Copying looks like moving, so in this case only files with changed contents are
            counted.

    Returns:
        The number of files.
    """
    sources = [*sources]
    newer: set[Path] = set()
    for path, stat in chain.from_iterable(map(_visible_files, sources)):
        changed = stat.st_mtime if is_copy else max(stat.st_mtime, stat.st_ctime)
        if changed > updated:
            newer.add(Path(path))
    if not newer:  # usually nothing has changed, and a scan takes longer
        return 0
    scans = (scan_files(source).files.values() for source in sources if source.exists())
    return len(newer.intersection(chain.from_iterable(scans)))


def _visible_files(source: Path) -> Iterator[tuple[str, os.stat_result]]:
    paths = [str(source)] if source.is_file() else []
    for folder, below, names in os.walk(source):
        below[:] = [name for name in below if not name.startswith(".")]
        paths += [os.path.join(folder, name) for name in names]
    for path in paths:
        with suppress(OSError):  # a removed file, or a broken link
            yield path, os.stat(path)
