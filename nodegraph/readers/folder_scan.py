"""Scan a folder for files to read."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ReadError, UnsupportedFilesError
from .formats import can_read, format_of, how_to_read_more
from .source_files import INDEX_FOLDER, ReadOptions

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class FolderScan:
    """The files of a folder.

    Attributes:
        root: The folder, or a single file.
        files: The files to read, by document id.
        unsupported: Paths of files without a reader.
        passed_over: Number of skipped entries by rule: ``"hidden"``, ``"ignored"``,
            ``"installed packages"``, ``"links"``, ``"not regular files"``. A folder counts as one.
    """

    root: Path
    files: dict[str, Path] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)

    @property
    def is_folder(self) -> bool:
        """Whether the root is a folder."""
        return self.root.is_dir()

    def unsupported_error(self) -> UnsupportedFilesError | None:
        """Return an error with the number of files without a reader, by suffix, and examples."""
        skipped = self.unsupported
        if not skipped:
            return None
        kinds = Counter(Path(file).suffix or "no suffix" for file in skipped)
        counts = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(8))
        names = ", ".join(Path(file).name for file in skipped[:3])
        more = ", ..." if len(skipped) > 3 else ""
        return UnsupportedFilesError(
            f"{len(skipped)} of the files in {self.root} have no reader ({counts}): {names}{more}; "
            f"{how_to_read_more()}add one with register_reader, or convert them",
            "without a reader",
            skippable=True,
        )


def scan_files(source: str | Path, options: ReadOptions | None = None) -> FolderScan:
    """Find the files of a source, sorted by document id.

    The id of a file is the folder's name and the path below the folder (``docs/guide/intro.md``),
    or the last two parts of its path if the source is a file. Ids do not change if the folder
    moves. Hidden entries, installed packages, symbolic links and entries that match
    ``.gitignore`` or ``.nodekinignore`` are skipped and counted. Files without a reader are
    skipped with a warning in the log.

    Raises:
        ReadError: If the source is missing.
    """
    options = options or ReadOptions()
    path = Path(source).expanduser()
    full = path.resolve()
    if full.is_file():
        return FolderScan(full, {f"{full.parent.name}/{full.name}".lstrip("/"): path})
    if not full.is_dir():
        raise ReadError(
            f"file or folder not found: {str(source)!r} (resolved to {full}); use graph.add(text) "
            "to add a text"
        )
    scan = FolderScan(full)
    for folder, names in _walk(path, options, scan.passed_over):
        above = f"{full.name}/{folder.relative_to(path).as_posix()}/".replace("/./", "/")
        for name in names:
            file = folder / name
            if can_read(name) or _has_format(file):
                scan.files[f"{above}{name}".lstrip("/")] = file
            else:
                scan.unsupported.append(str(file))
    if error := scan.unsupported_error():
        logger.warning("%s", error)
    scan.files = dict(sorted(scan.files.items()))
    return scan


def _has_format(file: Path) -> bool:
    """Return whether the format of a file is recognized by its content."""
    try:
        return format_of(file) is not None
    except ReadError:  # raised again by the reader, with the remedy
        return True
    except OSError:
        return False


def _walk(
    root: Path, options: ReadOptions, passed_over: Counter[str]
) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder with the names of its files that are not skipped."""
    rules = _IgnoreRules(root, options.ignore_files)
    seen: set[Path] = set()
    for name, folders, names in os.walk(root, followlinks=options.links):
        folder = Path(name)
        if options.links:  # a link may lead back
            if folder.resolve() in seen:
                folders.clear()
                continue
            seen.add(folder.resolve())

        def stays(entry: str, is_folder: bool, folder: Path = folder) -> bool:
            if entry == INDEX_FOLDER:
                return False
            if reason := _skip_reason(folder / entry, is_folder, root, options, rules):
                passed_over[reason] += 1
            return not reason

        folders[:] = [entry for entry in sorted(folders) if stays(entry, True)]
        yield folder, [entry for entry in sorted(names) if stays(entry, False)]


def _skip_reason(
    path: Path, is_folder: bool, root: Path, options: ReadOptions, rules: _IgnoreRules
) -> str:
    """Return the rule by which an entry is skipped, or an empty string."""
    if path.name.startswith(".") and not options.hidden:
        return "hidden"
    if is_folder and path.name in options.skip_folders:
        return "installed packages"
    if rules.match(path, is_folder):
        return "ignored"
    if path.is_symlink():
        if not options.links:  # files of the folder are read at their own place
            return "links"
        full, target = root.resolve(), path.resolve()
        if full in target.parents:
            inner = root / target.relative_to(full)
            above = [folder for folder in inner.parents if root in folder.parents]
            if rules.match(inner, is_folder) or any(rules.match(f, True) for f in above):
                return "ignored"
    return "" if is_folder or path.is_file() else "not regular files"  # a pipe would block


class _IgnoreRules:
    """The ignore files of a folder and of its subfolders."""

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        self._root = root
        self._names = names
        self._rules: dict[Path, Sequence[tuple[Path, GitIgnoreSpec]]] = {}

    def match(self, path: Path, is_folder: bool) -> bool:
        """Return whether a path is ignored. The last matching rule decides."""
        ignored = False
        for base, spec in self._rules_for(path.parent):
            name = path.relative_to(base).as_posix() + ("/" if is_folder else "")
            verdict = spec.check_file(name).include
            if verdict is not None:
                ignored = verdict
        return ignored

    def _rules_for(self, folder: Path) -> Sequence[tuple[Path, GitIgnoreSpec]]:
        if folder not in self._rules:
            above = () if folder == self._root else self._rules_for(folder.parent)
            self._rules[folder] = [*above, *_rules_in(folder, self._names)]
        return self._rules[folder]


def _rules_in(folder: Path, names: Sequence[str]) -> Iterator[tuple[Path, GitIgnoreSpec]]:
    for name in names:
        if (folder / name).is_file():
            from pathspec import GitIgnoreSpec

            try:
                lines = (folder / name).read_text(encoding="utf-8", errors="replace").splitlines()
                yield folder, GitIgnoreSpec.from_lines(lines)
            except (OSError, ValueError) as error:
                logger.warning("can't use %s: %s; nothing is ignored by it", folder / name, error)
