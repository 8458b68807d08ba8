"""Where a build's files are read."""
