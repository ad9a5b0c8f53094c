"""Models: embedders and language models, coerced from what people have, and their caches."""
