"""Transforms that split texts into sentences, chunks or sections, and record their positions."""
