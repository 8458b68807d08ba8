"""What is known of whole streams, told from columns: no observation is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bisector.history.database import Row
from bisector.history.observations import WANTED
from bisector.model import Depth, KernelSummary, LibraryStatus

SUMMARIES = f"""{WANTED}SELECT
    wanted.id,
    observations.deep_gemm_status,
    observations.depth,
    CASE
        WHEN observations.deep_gemm_status <> 'present' THEN json_extract(observations.document, '$.deep_gemm.reason')
    END,
    observations.commit_id,
    (SELECT json_group_object(arch, operations) FROM architectures WHERE observation_id = observations.id)
FROM wanted
JOIN observations ON observations.id = (
    SELECT candidates.id
    FROM observations AS candidates
    WHERE candidates.digest = wanted.digest
    ORDER BY candidates.depth = 'kernels' DESC, candidates.probe_version DESC
    LIMIT 1
)
ORDER BY wanted.place
"""  # noqa: S608 - put together of constants
"""For ``wanted``, a JSON array of ``{id, source, platform, digest}``; the columns that :func:`summaries` takes."""

_counts = msgspec.json.Decoder(dict[str, int])


def summaries(rows: Iterable[Row]) -> Mapping[str, KernelSummary]:
    """The summaries by build id; what only a newer bisector understands is left out."""
    found: dict[str, KernelSummary] = {}
    for build, status, depth, reason, commit, operations in rows:
        if status in _STATUSES and depth in _DEPTHS:
            summary = KernelSummary(
                status=LibraryStatus(str(status)),
                depth=Depth(str(depth)),
                reason=None if reason is None else str(reason),
                operations=_counts.decode(str(operations)),
                commit=None if commit is None else str(commit),
            )
            found.setdefault(str(build), summary)
    return found


_STATUSES = frozenset(LibraryStatus)
_DEPTHS = frozenset(Depth)
