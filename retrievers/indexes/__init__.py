"""The indexes that make similarities fast: inverted index, vector index, exact look-up, scan."""
