"""Analysis of texts and queries: the terms that a text index stores and looks up."""
