"""Every feature of a format is in the text or in the notes of the read report."""

import io
import re
import zipfile
from pathlib import Path

import pytest
from support.feature_files import FEATURES

from nodekin.nodegraph import NodeGraph

PARTS = re.compile(
    r"content\.xml|.*\.xhtml|word/(?!styles|numb).*\.xml|xl/(?!work).*\.xml"
    r"|ppt/(slides|notesSlides|diagrams)/\w+\.xml"
)


def words_of_file(data: bytes, suffix: str) -> set[str]:
    """Return the words of three or more letters in a text file, or in the XML of a packed file."""
    parts = [data] if suffix in (".csv", ".json", ".jsonl", ".txt", ".xml") else []
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = [archive.read(name) for name in archive.namelist() if PARTS.fullmatch(name)]
    parts = [re.sub(rb"<[^>]*>|\{[0-9A-F-]*\}", b" ", part) for part in parts]
    text = b" ".join(parts)
    return set(re.findall(r"[^\W\d_]{3,}", text.decode("utf-8", "ignore")))


@pytest.mark.parametrize("name", FEATURES)
def test_words_of_file_are_in_text_or_noted(tmp_path: Path, name: str) -> None:
    data, parts, left_out = FEATURES[name]()
    (tmp_path / name).write_bytes(data)
    graph = NodeGraph(tmp_path / name, progress=False)
    text = "\n".join(node.text for node in graph.nodes("ROOT"))
    noted = "".join(graph.read_report.notes.values())
    unread = " ".join(left_out.values()).split()
    assert [part for part in parts if part not in text] == []
    assert [note for note in left_out if note not in noted] == []
    assert [word for word in unread if word in text] == []
    words = words_of_file(data, Path(name).suffix)
    assert [word for word in words - {*unread} if word not in text] == []
    assert noted.count(": 1") + noted.count(": 2") + noted.count(": 3") <= 2 * len(left_out)
    assert not any("\ue000" <= character <= "\uf8ff" for character in text)
    assert text.count("Teahouse") <= 1
