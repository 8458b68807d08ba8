"""Where builds are listed."""
