"""The indexes of similarities: an inverted index, a vector index, an exact lookup and a scan."""
