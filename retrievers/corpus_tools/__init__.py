"""A corpus as tools for agents: search, grep, outline, read, related."""
