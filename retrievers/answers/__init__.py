"""Query engines, which answer questions and cite their sources."""
