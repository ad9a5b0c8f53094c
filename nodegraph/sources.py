"""Find the files that a folder or a path stands for."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from .errors import ReadError
from .readers import can_read

logger = logging.getLogger(__name__)


def scan(source: str | Path) -> dict[str, Path]:
    """Return the files of a source by document id, sorted by id.

    A file's id is made of the folder's name and the path below it (``docs/guide/intro.md``), or
    of the last two parts of its path when it is named alone: stable when the whole moves.
    Hidden files and folders are passed over; so are files without a reader, with a warning in
    the log that lists them.

    Raises:
        ReadError: If there is no such file or folder.
    """
    path = Path(source).expanduser()
    full = path.resolve()
    if full.is_file():
        return {f"{full.parent.name}/{full.name}".lstrip("/"): path}
    if not full.is_dir():
        raise ReadError(
            f"there is no file or folder {str(source)!r} (looked at {full}); a text is added "
            "with graph.add(text)"
        )
    files, unread = {}, []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            each = Path(folder, name)
            if name.startswith("."):
                continue
            if can_read(each):
                files[f"{full.name}/{each.relative_to(path).as_posix()}".lstrip("/")] = each
            else:
                unread.append(str(each))
    if unread:
        logger.warning(
            "left out, having no reader: %s%s; add one with register_reader",
            ", ".join(unread[:20]),
            f" and {len(unread) - 20} more" if len(unread) > 20 else "",
        )
    return dict(sorted(files.items()))
