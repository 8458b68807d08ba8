"""The ledger: every observation, in SQLite."""
