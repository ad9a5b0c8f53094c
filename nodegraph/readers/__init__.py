"""File readers, which convert files to documents."""
