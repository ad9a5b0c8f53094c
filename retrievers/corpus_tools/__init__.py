"""Tools with which an agent explores a corpus: search, grep, outline, read, related and cite."""
