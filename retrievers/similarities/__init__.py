"""How a query is scored against nodes: by words, by vectors, by rules of your own."""
