"""OCR of scans with Tesseract, if Tesseract is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from nodekin.adapters.cli.app import app
from nodekin.adapters.files.ocr import tesseract
from nodekin.nodegraph import NodeGraph, ReadOptions

TEXT = "Walruses pay half the price on Sundays."


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    """Return a PDF that is a picture of a text."""
    image = pytest.importorskip("PIL.Image")
    from PIL import ImageDraw, ImageFont

    page = image.new("L", (1240, 400), 255)
    font = ImageFont.load_default(size=44)
    ImageDraw.Draw(page).text((60, 120), TEXT, fill=0, font=font)
    path = tmp_path / "docs" / "scan.pdf"
    path.parent.mkdir()
    page.save(path, resolution=150)
    return path


def test_tesseract_reads_a_scan(scan: Path) -> None:
    pytest.importorskip("pytesseract")
    if shutil.which("tesseract") is None:
        pytest.skip("the program tesseract is not installed")
    graph = NodeGraph(scan, progress=False, reading=ReadOptions(ocr=tesseract("eng")))
    (node,) = graph.nodes("ROOT")
    assert node.text.strip() == TEXT
    with pytest.raises(ImportError, match="Tesseract has no language xyz; it has "):
        tesseract("xyz")


def test_index_with_ocr_reads_scans(scan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pytesseract")
    if shutil.which("tesseract") is None:
        pytest.skip("the program tesseract is not installed")
    monkeypatch.chdir(scan.parents[1])
    assert "docs/scan.pdf" in CliRunner().invoke(app, ["index", "docs"]).stderr
    assert CliRunner().invoke(app, ["index", "docs", "--ocr", "--rebuild"]).exit_code == 0
    found = CliRunner().invoke(app, ["search", "walruses on Sundays"])
    assert "Walruses pay half the price" in found.stdout


def test_missing_tesseract_error_names_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pytesseract")
    monkeypatch.setattr("pytesseract.pytesseract.tesseract_cmd", "no-such-program")
    with pytest.raises(ImportError, match="apt install tesseract-ocr"):
        tesseract()
