"""The analysis of texts and queries, which determines the terms that a text index stores."""
