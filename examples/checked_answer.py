"""An answer whose quotations are looked up in a PDF, page by page, and corrected.

The model's answer is written below; put one of yours in its place: OpenAIChat("gpt-4o-mini").
Needs what reads PDF: pip install "nodekin[files]"
"""

from importlib.util import find_spec
from pathlib import Path

from nodekin import NodeGraph
from nodekin.retrievers import DefaultRetriever, QueryEngine, check_quotes

ANSWER = (
    "The handbook says that green tea “is poured at Eighty degrees” and “rests for two minutes” "
    "[1]. The kettle is “cleaned with lemon on Fridays” [1]. "
    "“A new cup without a question … the head of the room” [1]. It was written by Mr Lu [1]."
)


def main() -> None:
    """Show each quotation with its page, what is wrong, and the corrected answer."""
    graph = NodeGraph(Path(__file__).parent / "files" / "handbook.pdf", progress=False)
    engine = QueryEngine(DefaultRetriever(graph), lambda prompt: ANSWER, check="quotes")
    answer = engine.query("How is green tea poured, and the kettle cleaned?")
    for quote in answer.quotes:
        if quote.quoted:
            where = quote.spans[0].place if quote.spans else ""
            print(f"{quote.status:<9} “{quote.text}” {where} {' '.join(quote.repairs)}".rstrip())
            for span in quote.spans:
                for location in span.locations:  # a line of the page each
                    print(f"{'':<9} at {location.rectangle}")
    print("", *answer.notes, sep="\n! ")
    print("\n" + check_quotes(answer, repair=True).text)


if __name__ == "__main__":
    if find_spec("pypdfium2") is None:
        raise SystemExit('This example needs: pip install "nodekin[files]"')
    main()
