"""Answers that share no words with their questions, and vectors that represent their meanings."""

from zlib import crc32

import numpy as np

# Each row consists of a meaning, an answer, and a question that uses different words.
ANSWERS = [
    (
        "refund",
        "Refunds are issued within fourteen days.",
        "How do I get my money back after a purchase?",
    ),
    ("dog", "Animals are not permitted inside.", "Can I bring my dog along to dinner?"),
    ("lift", "The lift is out of order.", "Why is the elevator broken this week?"),
    ("parking", "Vehicles may be left in the garage.", "Where can I park my car overnight?"),
    ("bill", "Invoices are sent on the first day.", "At what time does my bill arrive by mail?"),
    ("staff", "Personnel files are destroyed.", "Do you keep records of former workers?"),
]

# These texts use words of the questions with different meanings.
CHANCE = [
    "The bank has money in a safe.",
    "The dog show is a loud event.",
    "A glass elevator appears in the film.",
    "The park opens at dawn.",
    "The bill was passed by parliament.",
    "Workers built the dam.",
]

MEANINGS = {text: meaning for meaning, *texts in ANSWERS for text in texts}


def by_meaning(texts: list[str]) -> np.ndarray:
    """Return the same vector for all texts with the same meaning. Other texts are unrelated.

    Returns:
        An array of shape (texts, 64).
    """

    def of(key: str) -> np.ndarray:
        return np.random.default_rng(crc32(key.encode())).normal(size=64)

    return np.array([of(text) + 2 * of(MEANINGS.get(text, text)) for text in texts])
