"""What makes similarities fast: the inverted file, the vectors, the look-up; and their names."""
