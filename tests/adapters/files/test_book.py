"""Books."""

import zipfile
from pathlib import Path

from nodekin.nodegraph import NodeGraph


def test_epub_is_read_with_chapters_and_metadata(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "book.epub", "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "OEBPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>茶经</dc:title>'
            "<dc:creator>陆羽</dc:creator></metadata><manifest>"
            '<item id="two" href="b.xhtml"/><item id="one" href="text/a%20b.xhtml"/>'
            '</manifest><spine><itemref idref="one"/><itemref idref="two"/></spine></package>',
        )
        archive.writestr("OEBPS/text/a b.xhtml", "<html><body><h1>一</h1><p>源。</p></body></html>")
        archive.writestr("OEBPS/b.xhtml", "<html><body><h1>二</h1><p>具。</p></body></html>")
    (node,) = NodeGraph(tmp_path / "book.epub", progress=False).nodes("ROOT")
    assert node.text == "# 一\n\n源。\n\n\f\n\n# 二\n\n具。"
    assert (node.metadata["title"], node.metadata["author"]) == ("茶经", "陆羽")
