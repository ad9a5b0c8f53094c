"""Set-ups: retrievers and query engines in TOML, measured and deployed as the same thing."""
