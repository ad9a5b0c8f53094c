"""What makes similarities fast: inverted index, vector index, exact look-up, scan."""
