"""Scan a folder for files that can be read as documents."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from ..errors import ReadError, UnsupportedFilesError
from .formats import format_by_name, format_of, how_to_read_more, registered_reader
from .ignore_rules import IgnoreRules
from .source_files import INDEX_FOLDER, WITHOUT_READER, ReadOptions, first_of

logger = logging.getLogger(__name__)

_MAX_IGNORE_FILE = 1_000_000  # number of bytes


@dataclass
class FolderScan:
    """The result of scanning a folder.

    Attributes:
        root: The folder that was scanned, or a single file.
        files: The paths of the files to read, keyed by document id.
        unsupported: The paths of files whose type is not supported.
        errors: The errors of files that cannot be read, such as links to missing files, keyed by
            document id.
        passed_over: The number of skipped entries for each reason: ``"hidden"``, ``"ignored"``,
            ``"installed packages"``, ``"links"``, ``"not regular files"`` or ``"unreadable"``. A
            folder counts as one entry.
    """

    root: Path
    files: dict[str, Path] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    errors: dict[str, ReadError] = field(default_factory=dict)
    passed_over: Counter[str] = field(default_factory=Counter)

    def below(self, path: Path) -> dict[str, Path]:
        """Return the files at or below a path, keyed by document id."""
        if path in self._ids:
            return {self._ids[path]: path}
        return {i: file for file, i in self._ids.items() if file.is_relative_to(path)}

    @cached_property
    def _ids(self) -> dict[Path, str]:
        return {file.absolute(): i for i, file in self.files.items()}

    def add(self, file_id: str, file: Path) -> None:
        """Add a file that must not be skipped.

        If its type is not supported, it is only recorded.
        """
        if format_by_name(file) or registered_reader(file) or _has_format(file):
            self.files[file_id] = file
        else:
            self.unsupported.append(str(file))

    def add_broken_link(self, file_id: str, link: Path) -> None:
        """Record a symbolic link whose target is missing."""
        self.files[file_id] = link
        self.errors[file_id] = ReadError(
            f"{link} is a symbolic link to a missing file; restore the file or delete the link",
            "broken link",
        )

    def unsupported_error(self) -> UnsupportedFilesError | None:
        """Create an error that counts the files of unsupported types by suffix.

        Return None if there are none.
        """
        skipped = self.unsupported
        if not skipped:
            return None
        kinds = Counter(Path(file).suffix or "no suffix" for file in skipped)
        counts = ", ".join([f"{kind} {count}" for kind, count in kinds.most_common(8)])
        names = first_of([Path(file).name for file in skipped], 3)
        verb = "has" if len(skipped) == 1 else "have"
        return UnsupportedFilesError(
            f"{len(skipped)} of the files in {self.root} {verb} no reader ({counts}): {names}; "
            f"{how_to_read_more()}add one with register_reader, or convert them",
            WITHOUT_READER,
            dict(kinds.most_common()),
        )


def scan_files(source: str | Path, options: ReadOptions | None = None) -> FolderScan:
    """Find all files in a folder that can be read, sorted by document id.

    The id of a file consists of the folder's name and the path inside the folder
    (``docs/guide/intro.md``). If the source is a single file, its id consists of the last two parts
    of its path. The ids stay the same if the folder is moved. Hidden entries, installed packages,
    symbolic links and entries that match ``.gitignore`` or ``.nodekinignore`` are skipped and
    counted.

    Raises:
        ReadError: If the source does not exist.
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
    is_ignored = _ignore_rules(path, options.ignore_files)
    folders = [path]
    while folders:  # os.walk is not used, because it fails in deep folders before Python 3.12.
        folder = folders.pop()
        above = f"{full.name}/{folder.relative_to(path).as_posix()}/".replace("/./", "/")
        folders += _scan_folder(scan, folder, above, options, is_ignored)
    scan.unsupported.sort()
    scan.files = dict(sorted(scan.files.items()))
    return scan


def _scan_folder(
    scan: FolderScan, folder: Path, above: str, options: ReadOptions, is_ignored: IsIgnored
) -> list[Path]:
    """Add the files in a folder to a scan, and return its subfolders.

    The ids of the files begin with ``above``.
    """
    folders: list[Path] = []
    for name, is_folder in _entries(folder).items():
        if name == INDEX_FOLDER:
            continue
        file = folder / name
        file_id = f"{above}{name}".lstrip("/")
        reason = _rule(file, is_folder, options, is_ignored)
        if reason == "links" and not os.path.exists(file):
            scan.add_broken_link(file_id, file)
        elif reason:
            scan.passed_over[reason] += 1
        elif is_folder:
            folders.append(file)
        else:
            scan.add(file_id, file)
    return folders


def _entries(folder: Path) -> dict[str, bool]:
    """Return the names of the entries in a folder, and whether each of them is a folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: _is_folder(entry) for entry in entries}
    except OSError as error:
        logger.warning("can't read the folder %s: %s", folder, error.strerror)
        return {}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to a folder."""
    try:
        return entry.is_dir()
    except OSError:  # The link points to itself.
        return False


def _has_format(file: Path) -> bool:
    """Return whether the content of a file has a known format."""
    try:
        return format_of(file) is not None
    except ReadError:  # The reader raises this error again, with advice on how to fix it.
        return True
    except OSError:
        return False


IsIgnored = Callable[[Path, bool], bool]
"""A function that takes a path and whether it is a folder, and returns whether it is ignored."""


def _rule(path: Path, is_folder: bool, options: ReadOptions, is_ignored: IsIgnored) -> str:
    """Return the reason for skipping an entry, or an empty string.

    This function never raises errors.
    """
    try:
        return _skip_reason(path, is_folder, options, is_ignored)
    except OSError as error:  # The path is too long.
        logger.warning("can't read an entry of %s: %s", path.parent, error.strerror)
        return "unreadable"


def _skip_reason(path: Path, is_folder: bool, options: ReadOptions, is_ignored: IsIgnored) -> str:
    """Return the reason for skipping an entry, or an empty string if it must be read."""
    if path.name.startswith(".") and not options.hidden:
        return "hidden"
    if is_folder and path.name in options.skip_folders:
        return "installed packages"
    if is_ignored(path, is_folder):
        return "ignored"
    if path.is_symlink():
        return "links"
    if is_folder or path.is_file():
        return ""
    return "not regular files"  # Reading from a pipe would block.


def _ignore_rules(root: Path, names: Sequence[str]) -> IsIgnored:
    """Return a function that applies the ignore files in a folder and its subfolders.

    If several rules match, the last one is used.
    """

    @cache
    def rules_for(folder: Path) -> Sequence[tuple[Path, IgnoreRules]]:
        rules = [] if folder == root else [*rules_for(folder.parent)]
        for name in names:
            file = folder / name
            if file.is_file() and (text := _ignore_file(file)):
                rules.append((folder, IgnoreRules(text)))
        return rules

    def is_ignored(path: Path, is_folder: bool) -> bool:
        for base, rules in reversed(rules_for(path.parent)):
            verdict = rules.verdict(path.relative_to(base).parts, is_folder)
            if verdict is not None:
                return verdict
        return False

    return is_ignored


def _ignore_file(file: Path) -> str:
    """Return the content of an ignore file. If it cannot be read, log a warning."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_IGNORE_FILE + 1)
    except OSError as error:
        logger.warning("can't read %s: %s; its patterns are not used", file, error)
        return ""
    if len(content) > _MAX_IGNORE_FILE:
        logger.warning(
            "%s must have at most %s bytes; its patterns are not used",
            file,
            f"{_MAX_IGNORE_FILE:,}",
        )
        return ""
    return content.decode("utf-8", "replace")
