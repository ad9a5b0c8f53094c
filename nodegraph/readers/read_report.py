"""What became of the files of a folder, in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..document import Document
from ..errors import ReadError


@dataclass(slots=True)
class ReadReport:
    """What the last reading of files did.

    Attributes:
        read: How many files were read.
        unchanged: How many were as they were, and not read again.
        skipped: Why files could not be read, by their paths.
        notes: Notes on files that were read, by path, such as pages without a text.
        encodings: How many texts are in which encoding, those in UTF-8 left out.
        passed_over: How many files and folders were passed over, by rule:
            ``"hidden"``, ``"ignored"``, ``"installed packages"``, ``"links"``.
        unsupported: Paths of files without a reader.

    Example:
        >>> report = ReadReport(read=1204)
        >>> report.skipped["a.pdf"] = ReadError("a.pdf is encrypted", "encrypted PDF")
        >>> report.passed_over["hidden"] += 2
        >>> print(report)
        1,204 read, 1 skipped: 1 encrypted PDF; 2 hidden
    """

    read: int = 0
    unchanged: int = 0
    skipped: dict[str, ReadError] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    encodings: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    unsupported: list[str] = field(default_factory=list)

    @property
    def is_remarkable(self) -> bool:
        """Whether there is more to report than how many files were read."""
        seen = (self.skipped, self.notes, self.encodings, self.passed_over, self.unsupported)
        return any(map(bool, seen))

    def include(self, other: ReadReport) -> None:
        """Add what another reading did."""
        self.read += other.read
        self.unchanged += other.unchanged
        self.skipped.update(other.skipped)
        self.notes.update(other.notes)
        self.encodings += other.encodings
        self.passed_over += other.passed_over
        self.unsupported += other.unsupported

    def note(self, path: Path, documents: Sequence[Document]) -> None:
        """Note which pages of a file that was read have no text, and which encoding it is in."""
        names = {str(document.metadata.get("encoding", "")) for document in documents}
        self.encodings.update(names - {""})
        for document in documents:
            if pages := document.metadata.get("unread_pages"):
                self.notes[str(path)] = (
                    f"{path} was read without {_pages(pages)} of {document.metadata['page_count']},"
                    " which have no text or one that is none: give ReadOptions(ocr=...) to read "
                    "them from their images"
                )

    def __str__(self) -> str:
        counts = [f"{self.read:,} read"]
        if self.unchanged:
            counts.append(f"{self.unchanged:,} unchanged")
        kinds = Counter(error.kind for error in self.skipped.values())
        if self.unsupported:
            kinds["without a reader"] += len(self.unsupported)
        if kinds:
            reasons = ", ".join(f"{n:,} {_plural(kind, n)}" for kind, n in kinds.most_common())
            counts.append(f"{sum(kinds.values()):,} skipped: {reasons}")
        text = ", ".join(counts)
        if self.encodings:
            names = ", ".join(f"{n:,} {name}" for name, n in self.encodings.most_common())
            text += f"; not in UTF-8: {names}"
        if self.notes:
            text += f"; {len(self.notes):,} read in part"
        passed = ", ".join(f"{count:,} {rule}" for rule, count in self.passed_over.most_common())
        return f"{text}; {passed}" if passed else text


def _pages(pages: Sequence[int]) -> str:
    """Name pages.

    Example:
        >>> _pages([3]), _pages([1, 2, 3, 7])
        ('page 3', 'pages 1-3, 7')
    """
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    names = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"page{'s' if len(pages) > 1 else ''} {', '.join(names)}"


_NOUNS = ("PDF", "document", "file", "archive", "picture", "EPUB", "spreadsheet", "database")


def _plural(kind: str, count: int) -> str:
    return f"{kind}s" if count != 1 and kind.endswith(_NOUNS) else kind
