"""Small files of every supported format, created without LibreOffice."""

import io
import json
import zipfile
from email.message import EmailMessage
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "examples" / "files"

PAGE = (
    "<!DOCTYPE html><html><head><title>茶</title></head><body><h1>Tea</h1><p>A drink.</p>"
    "<ul><li>Green<ul><li>绿</li></ul></li></ul><table><tr><th>Tea</th><th>Cup</th></tr>"
    "<tr><td>Keemun</td><td>3</td></tr></table><pre><code>boil()</code></pre></body></html>"
)

TEXTS = {
    "a.md": "# Tea\n\nA drink.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n",
    "b.rst": "Tea\n===\n\nA drink.\n",
    "c.py": "class Cup:\n    def pour(self):\n        return 'tea'\n",
    "d.csv": "tea,cup\nKeemun,3\n",
    "e.json": '{"tea": ["green", "\\u8336"]}',
    "f.jsonl": '{"text": "one"}\n{"text": "two", "id": "b"}\n',
    "g.xml": "<?xml version='1.0'?><tea><cup>green</cup></tea>",
    "h.html": PAGE,
    "i.tex": "\\section{Tea}\nA drink.",
    "j.rtf": "{\\rtf1\\ansi{\\fonttbl\\f0 Arial;}\\f0 Tea is \\b a drink\\b0 .\\par \\u33590?}",
}


_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_RELATION = (
    f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{_LINKS}/%s" Target="%s"/></Relationships>'
)

PACKED = {
    "o.epub": {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": f'<container xmlns="{_OASIS}:container"><rootfiles><rootfile '
        'full-path="book.opf"/></rootfiles></container>',
        "book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" '
        'href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>',
        "a.xhtml": PAGE,
    },
    "p.odt": {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "META-INF/manifest.xml": "<manifest/>",
        "content.xml": f'<o:document-content xmlns:o="{_OASIS}:office:1.0" '
        f'xmlns:t="{_OASIS}:text:1.0"><o:body><o:text><t:h t:outline-level="1">Tea</t:h>'
        "<t:p>A drink.</t:p></o:text></o:body></o:document-content>",
    },
    "r.xlsx": {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": _RELATION % ("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEETS}" xmlns:r="{_LINKS}"><sheets><sheet '
        'name="Tea" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _RELATION % ("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_SHEETS}"><sheetData><row r="1">'
        '<c r="A1"><v>3</v></c></row></sheetData></worksheet>',
    },
}
"""The contents of zip-based files."""


def sample_files(folder: Path) -> list[Path]:
    """Write a file of every format to a folder, and return the sorted paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "k.txt").write_bytes(
        "绿茶在五月和九月购买，产地是安吉和龙井的茶园。".encode("gb18030")
    )
    for file in SAMPLES.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    cells = [
        {"cell_type": "markdown", "source": ["# Tea\n", "A drink."]},
        {"cell_type": "code", "source": "1 + 1", "outputs": [{"data": {"text/plain": "2"}}]},
    ]
    (folder / "l.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "茶", "a@example.org"
    mail.set_content("Tea.")
    mail.add_alternative(PAGE, subtype="html")
    mail.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="a.pdf")
    (folder / "m.eml").write_bytes(bytes(mail))
    (folder / "n.mbox").write_bytes(b"From a@b Mon Jan  1 00:00:00 2026\n" + bytes(mail) + b"\n")
    for name, parts in PACKED.items():
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, text in parts.items():
                archive.writestr(part, text, 0 if part == "mimetype" else None)
    _slides(folder / "q.pptx")
    return sorted(folder.iterdir())


def _slides(path: Path) -> None:
    from pptx import Presentation

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Tea"
    slide.placeholders[1].text = "Green\nBlack"
    deck.save(str(path))


def pdf_of(*pages: bytes, extra: bytes = b"", font: bytes = b"") -> bytes:
    """Create a PDF from the content stream of each page."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(pages)))
    objects.append(b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids))
    objects.append(font or b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for number, content in enumerate(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents %d 0 R/Resources<</Font"
            b"<</F 3 0 R>>/XObject<</I %d 0 R>>>>>>" % (5 + 2 * number, 4 + 2 * len(pages))
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    objects.append(
        b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8"
        b"/Length 1>>stream\n0\nendstream"
    )
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, 2)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj%s endobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer<</Size %d/Root 1 0 R%s>>" % (len(objects) + 1, extra))
    out.write(b"\nstartxref\n%d\n%%%%EOF" % table)
    return out.getvalue()
