"""The command line: parse, run one job, render, exit code."""
