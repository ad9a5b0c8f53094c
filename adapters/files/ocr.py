"""Recognize text in page images with Tesseract.

Use it as ``ReadOptions(ocr=tesseract())`` or ``nodekin index --ocr``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..extras import extra


def tesseract(languages: str = "") -> Callable[[Any], str]:
    """Return a function that recognizes the text of a page image, for ``ReadOptions(ocr=...)``.

    Tesseract must be installed separately: ``apt install tesseract-ocr tesseract-ocr-chi-sim``, or
    ``brew install tesseract tesseract-lang``. For good results, pages should have a resolution of
    300 dpi.

    Args:
        languages: The languages of the pages as Tesseract names, such as ``"chi_sim+eng"``. By
            default, all installed languages are used, which is slower and less accurate.

    Raises:
        ImportError: If ``pytesseract``, Tesseract or a language is not installed.
    """
    with extra("ocr", "pytesseract"):
        import pytesseract
    try:
        installed = [name for name in pytesseract.get_languages() if name != "osd"]
    except pytesseract.TesseractNotFoundError:
        installed = []
    if not installed:
        raise ImportError(
            "the program tesseract is not installed, or has no language; get it with your "
            "system's packages, such as: apt install tesseract-ocr tesseract-ocr-chi-sim"
        )
    names = languages.split("+") if languages else installed
    missing = [name for name in names if name not in installed]
    if missing:
        raise ImportError(
            f"Tesseract has no language {', '.join(missing)}; it has {', '.join(installed)}"
        )
    return partial(pytesseract.image_to_string, lang="+".join(names))
