"""Tools with which agents use a corpus: search, grep, outline, read, related."""
