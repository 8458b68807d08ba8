"""Results as plain data: what ``--json`` prints, and what the other forms are made from (DESIGN §5).

A document is one whole answer, a body what it says after its head, and fields are those of one thing in it.
"""
