"""Container images, read without pulling them: one layer's stream, and only as far as it takes."""
