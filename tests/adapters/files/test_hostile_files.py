"""Files that are made to harm: entities, bombs, macros; nothing outside them is read."""

import zipfile
from pathlib import Path

import pytest
from support.sample_files import sample_files

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "secret.txt"
    path.parent.mkdir()
    path.write_text("the secret")
    return path


def rewritten(path: Path, part: str, change) -> None:
    """Change one part of a packed file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert part in parts
    parts[part] = change(parts[part])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


PARTS = {
    "手册.docx": "word/document.xml",
    "p.odt": "content.xml",
    "q.pptx": "ppt/slides/slide1.xml",
    "r.xlsx": "xl/worksheets/sheet1.xml",
    "o.epub": "a.xhtml",
}


def with_doctype(data: bytes, doctype: str) -> bytes:
    """Put a document type before the root, and its entity into the first text."""
    text = data.decode("utf-8")
    if text.startswith("<?xml"):
        text = text[text.index("?>") + 2 :]
    if text.startswith("<!DOCTYPE html>"):
        text = text.removeprefix("<!DOCTYPE html>")
    for begin in ("</w:t>", "</a:t>", "A drink.", "</v>"):
        if begin in text:
            text = text.replace(begin, f"&x;{begin}", 1)
            break
    return f'<?xml version="1.0"?>{doctype}{text}'.encode()


def text_of(folder: Path) -> str:
    graph = NodeGraph(folder, progress=False, on_error="skip")
    return "\n".join(node.text for node in graph.nodes("ROOT"))


BOMB = "<!DOCTYPE x [<!ENTITY a0 'boom'>" + "".join(
    f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10)
)


@pytest.mark.parametrize("name", PARTS)
def test_entities_are_not_followed_and_expand_to_little_text(
    tmp_path: Path, secret: Path, name: str
) -> None:
    sample_files(tmp_path / "all")
    (tmp_path / "docs").mkdir()
    file = tmp_path / "docs" / name
    external = f'<!DOCTYPE x [<!ENTITY x SYSTEM "file://{secret}">]>'
    for doctype in (external, BOMB + "<!ENTITY x '&a9;'>]>"):
        file.write_bytes((tmp_path / "all" / name).read_bytes())
        rewritten(file, PARTS[name], lambda data, added=doctype: with_doctype(data, added))
        text = text_of(tmp_path / "docs")
        assert "the secret" not in text
        assert len(text) < 10_000


@pytest.mark.parametrize("name", PARTS)
def test_archives_above_unpacked_limit_are_skipped(tmp_path: Path, name: str) -> None:
    sample_files(tmp_path / "all")
    file = tmp_path / "all" / name
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("filling.bin", bytes(3_000_000))
    assert file.stat().st_size < 100_000
    limits = ReadOptions(max_unpacked_bytes=2_000_000)
    with pytest.raises(ReadError, match="unpacks to 3,") as refused:
        NodeGraph(file, progress=False, reading=limits)
    assert refused.value.kind == "too large unpacked"


def test_web_page_loads_no_external_content(tmp_path: Path, secret: Path) -> None:
    (tmp_path / "a.html").write_text(
        f'<html><body><p>Page</p><iframe src="file://{secret}"></iframe><object data="{secret}">'
        f'</object><script>document.write("evil")</script><img src="file://{secret}"></body></html>'
    )
    text = text_of(tmp_path / "a.html")
    assert "the secret" not in text
    assert "evil" not in text
