"""Create documents with known texts in the flat OpenDocument format for LibreOffice to convert.

``python benchmarks/office_files.py`` recreates the files that the tests and examples use.
"""

from __future__ import annotations

import html
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.office_files import FIXTURES, KNOWN, Block

FORMATS = ("pdf", "docx", "odt", "rtf", "html", "epub")

_NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{urn}:1.0"'
    for name, urn in {
        "office": "office",
        "style": "style",
        "text": "text",
        "table": "table",
        "fo": "xsl-fo-compatible",
    }.items()
)


def flat_document(blocks: Iterable[Block], *, vertical: bool = False) -> str:
    """Format blocks of text as a flat OpenDocument file."""
    headings = "".join(
        f'<style:style style:name="H{level}" style:display-name="Heading {level}" '
        f'style:family="paragraph" style:default-outline-level="{level}" style:class="text">'
        f'<style:text-properties fo:font-size="{26 - 4 * level}pt" fo:font-weight="bold" '
        f'style:font-size-asian="{26 - 4 * level}pt"/></style:style>'
        for level in (1, 2, 3)
    )
    writing = ' style:writing-mode="tb-rl"' if vertical else ""
    notes = iter(range(1, 10_000))
    body = "".join(_xml(block, notes) for block in blocks)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {_NAMESPACES} '
        'office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.text">'
        '<office:styles><style:style style:name="Standard" style:family="paragraph">'
        '<style:text-properties fo:font-size="11pt" style:font-size-asian="11pt"/></style:style>'
        f"{headings}</office:styles><office:automatic-styles>"
        '<style:style style:name="Cell" style:family="table-cell"><style:table-cell-properties '
        'fo:padding="0.1cm" fo:border="0.5pt solid #000000"/></style:style>'
        '<style:style style:name="Two" style:family="section"><style:section-properties>'
        '<style:columns fo:column-count="2" fo:column-gap="0.5cm"/></style:section-properties>'
        '</style:style><style:style style:name="Break" style:family="paragraph" '
        'style:parent-style-name="Standard"><style:paragraph-properties fo:break-before="page"/>'
        '</style:style><style:page-layout style:name="P"><style:page-layout-properties '
        f'fo:page-width="21cm" fo:page-height="29.7cm" fo:margin="2cm"{writing}/>'
        "</style:page-layout></office:automatic-styles><office:master-styles>"
        '<style:master-page style:name="Standard" style:page-layout-name="P"/>'
        f"</office:master-styles><office:body><office:text>{body}</office:text></office:body>"
        "</office:document>"
    )


def _xml(block: Block, notes: Any) -> str:
    kind, *rest = block
    if kind == "h":
        level, text = rest
        return (
            f'<text:h text:style-name="H{level}" text:outline-level="{level}">'
            f"{html.escape(text)}</text:h>"
        )
    if kind == "p":
        return f'<text:p text:style-name="Standard">{html.escape(rest[0])}</text:p>'
    if kind == "page":
        return '<text:p text:style-name="Break"></text:p>'
    if kind == "note":
        number = next(notes)
        return (
            f'<text:p text:style-name="Standard">{html.escape(rest[0])}<text:note '
            f'text:id="n{number}" text:note-class="footnote"><text:note-citation>{number}'
            f"</text:note-citation><text:note-body><text:p>{html.escape(rest[1])}</text:p>"
            "</text:note-body></text:note></text:p>"
        )
    if kind == "list":
        items = "".join(
            f"<text:list-item><text:p>{html.escape(item)}</text:p></text:list-item>"
            for item in rest[0]
        )
        return f"<text:list>{items}</text:list>"
    if kind == "table":
        rows = "".join(
            "<table:table-row>"
            + "".join(
                '<table:table-cell table:style-name="Cell" office:value-type="string">'
                f"<text:p>{html.escape(cell)}"
                "</text:p></table:table-cell>"
                for cell in row
            )
            + "</table:table-row>"
            for row in rest[0]
        )
        columns = f'<table:table-column table:number-columns-repeated="{len(rest[0][0])}"/>'
        return f'<table:table table:name="T">{columns}{rows}</table:table>'
    inner = "".join(_xml(one, notes) for one in rest[0])
    return f'<text:section text:style-name="Two" text:name="two">{inner}</text:section>'


def convert(path: Path, *formats: str) -> None:
    """Convert a file to other formats with LibreOffice.

    The results are written next to the file.
    """
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        raise SystemExit("LibreOffice is missing: apt-get install libreoffice-writer-nogui")
    profile = f"-env:UserInstallation=file://{path.parent.absolute()}/.profile"
    for name in formats:
        command = [office, "--headless", profile, "--convert-to", name, "--outdir", path.parent]
        subprocess.run([*command, path], check=True, capture_output=True)


def main() -> None:
    """Write the files for the tests and the examples."""
    examples = Path(__file__).parents[1] / "examples" / "files"
    FIXTURES.mkdir(exist_ok=True)
    for name, blocks in KNOWN.items():
        source = FIXTURES / f"{name}.fodt"
        source.write_text(flat_document(blocks, vertical=name == "直排"), encoding="utf-8")
        convert(source, *(["pdf"] if name == "直排" else FORMATS))
        source.unlink()
    shutil.rmtree(FIXTURES / ".profile")
    for name in ("handbook.pdf", "手册.docx"):
        (FIXTURES / name).replace(examples / name)


if __name__ == "__main__":
    main()
