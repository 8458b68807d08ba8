"""Find the build that lost an architecture's kernels, without a GPU and without pulling it."""
