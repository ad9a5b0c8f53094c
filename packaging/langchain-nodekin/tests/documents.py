"""Sample documents that are used in the tests."""

from langchain_core.documents import Document

DOCUMENTS = [
    Document(f"Tea number {n} is a drink. It has {n} leaves.", id=f"tea-{n}") for n in range(5)
]
