"""Find the files of a folder that are to be read, and say which are passed over, and why."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence, Set
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
    """The files of a folder, and what was passed over.

    Attributes:
        root: The folder, or the file that was named alone.
        files: The files to read, by document id.
        unsupported: Paths of files without a reader.
        passed_over: How many entries were passed over by a rule, by the rule's name: ``"hidden"``,
            ``"ignored"``, ``"installed packages"``, ``"links"``. A folder counts as one.
    """

    root: Path
    files: dict[str, Path] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.root.is_dir()

    def unsupported_error(self) -> UnsupportedFilesError | None:
        """Return an error that counts the files without a reader by kind, and names some."""
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

    A file's id is made of the folder's name and the path below it (``docs/guide/intro.md``), or
    of the last two parts of its path when it is named alone: stable when the whole moves.
    Hidden files and folders, those of installed packages, those that ``.gitignore`` or
    ``.nodekinignore`` name, and symbolic links are passed over and counted. So
    are files without a reader, with a warning in the log that says how many of which kind.

    Raises:
        ReadError: If there is no such file or folder.
    """
    options = options or ReadOptions()
    path = Path(source).expanduser()
    full = path.resolve()
    if full.is_file():
        return FolderScan(full, {f"{full.parent.name}/{full.name}".lstrip("/"): path})
    if not full.is_dir():
        raise ReadError(
            f"there is no file or folder {str(source)!r} (looked at {full}); a text is added "
            "with graph.add(text)"
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
    """Return whether a file is known by what it is, whatever its name."""
    try:
        return format_of(file) is not None
    except ReadError:  # which reading will raise, too, and say what to do
        return True
    except OSError:
        return False


def _walk(
    root: Path, options: ReadOptions, passed_over: Counter[str]
) -> Iterator[tuple[Path, list[str]]]:
    """Yield a folder and those below it, with the names of files that no rule passes over."""
    full = root.resolve()
    rules = _IgnoreRules(root, options.ignore_files)
    seen: set[Path] = set()
    for name, folders, names in os.walk(root, followlinks=options.links):
        folder = Path(name)
        if options.links:  # which may lead back
            if folder.resolve() in seen:
                folders.clear()
                continue
            seen.add(folder.resolve())
        regular = _regular_files(folder)
        has_rules = rules.has_rules(folder)

        def stays(
            entry: str,
            is_folder: bool,
            folder: Path = folder,
            regular: Set[str] = regular,
            has_rules: bool = has_rules,
        ) -> bool:
            if entry == INDEX_FOLDER:
                return False
            is_hidden = entry.startswith(".") and not options.hidden
            if entry in regular and not (is_hidden or has_rules):
                return True
            path = folder / entry
            reason = ""
            if is_hidden:
                reason = "hidden"
            elif is_folder and entry in options.skip_folders:
                reason = "installed packages"
            elif rules.name(path, is_folder):
                reason = "ignored"
            elif path.is_symlink():
                target = path.resolve()
                if not options.links:  # what one leads to in the folder is read there
                    reason = "links"
                elif full in target.parents and rules.name_with_folders(
                    root / target.relative_to(full), is_folder
                ):
                    reason = "ignored"
            if not reason and not is_folder and not path.is_file():
                reason = "not regular files"  # a pipe would wait for ever
            if reason:
                passed_over[reason] += 1
            return not reason

        folders[:] = [entry for entry in sorted(folders) if stays(entry, True)]
        yield folder, [entry for entry in sorted(names) if stays(entry, False)]


def _regular_files(folder: Path) -> Set[str]:
    """Return the names of a folder's files that are no links, without a look at each file."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
    except OSError:  # it went meanwhile
        return frozenset()


class _IgnoreRules:
    """Tell which paths the ignore files of a folder, and of those below it, name."""

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        self._root = root
        self._names = names
        self._rules: dict[Path, Sequence[tuple[Path, GitIgnoreSpec]]] = {}

    def has_rules(self, folder: Path) -> bool:
        """Return whether there are any for what is in a folder."""
        return bool(self._rules_for(folder))

    def name(self, path: Path, is_folder: bool) -> bool:
        """Return whether they name a path. The last rule that matches decides."""
        ignored = False
        for base, spec in self._rules_for(path.parent):
            name = path.relative_to(base).as_posix() + ("/" if is_folder else "")
            verdict = spec.check_file(name).include
            if verdict is not None:
                ignored = verdict
        return ignored

    def name_with_folders(self, path: Path, is_folder: bool) -> bool:
        """Return whether they name a path, or a folder that it is in."""
        above = [folder for folder in path.parents if self._root in folder.parents]
        return self.name(path, is_folder) or any(self.name(folder, True) for folder in above)

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
