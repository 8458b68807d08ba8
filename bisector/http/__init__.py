"""The one door to the network.

Whole answers are bounded, parts of large files are asked for by Range, failures that may pass are tried again, and
everything httpx can raise leaves here as an error of :mod:`bisector.errors`. A user and password in an address are
used for that address's own host only, and appear in no message.
"""

from bisector.http.client import Http, Reply
from bisector.http.connections import Traffic
from bisector.http.failures import host_of, redacted
from bisector.http.patience import Patience
from bisector.http.stream import Streamed

__all__ = ["Http", "Patience", "Reply", "Streamed", "Traffic", "host_of", "redacted"]
