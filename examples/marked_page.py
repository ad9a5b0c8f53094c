"""Find a quotation in a PDF, and save an image of the page in which the quotation is highlighted.

Usage: python examples/marked_page.py [FILE.pdf QUOTATION]. The image is saved in the current
folder. A PDF reader is required: pip install "nodekin[files]"
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from nodekin import NodeGraph
from nodekin.retrievers import check_quotes

HANDBOOK = Path(__file__).parent / "files" / "handbook.pdf"
QUOTATION = "Emptied every evening and cleaned with vinegar"


def main(file: Path, quotation: str) -> None:
    """Print the page and the lines of the quotation, and save the image."""
    from nodekin.adapters.files.page_images import page_image

    with NodeGraph(file, progress=False) as graph:
        (quote,) = check_quotes(f"“{quotation}”", list(graph.nodes("page"))).quotes
        print(f"{quote.status}: “{quotation}”")
        if not quote.spans:
            raise SystemExit(f"the nearest text is: {quote.nearest and quote.nearest.text}")
        span = quote.spans[0]
        print(f"“{span.text}” is in {span.place}")
        for location in span.locations:
            print(f"  page {location.page}, {location.rectangle} of its width and height")
        picture = Path(f"{file.stem}-page-{span.locations[0].page}.png")
        picture.write_bytes(page_image(span))
        print(picture)


if __name__ == "__main__":
    if find_spec("pypdfium2") is None:
        raise SystemExit('This example needs: pip install "nodekin[files]"')
    main(*((Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else (HANDBOOK, QUOTATION)))
