"""One result, many forms."""
