"""Metrics for the textfile collector of Prometheus' node exporter, which reads them when it likes.

https://github.com/prometheus/node_exporter#textfile-collector
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from anyio import to_thread

from bisector.errors import ConfigError, Unavailable
from bisector.model import Answer
from bisector.results import Night


class Textfile:
    """A file of metrics, replaced as a whole.

    Args:
        name: What the configuration calls it.
        path: The file, ending in ``.prom``.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path

    async def show(self, night: Night, *, pending: int) -> None:
        """Write the metrics of a night."""
        await to_thread.run_sync(self._write, night, pending)

    async def try_out(self) -> str:
        """Find out whether the file can be replaced, and leave it as it is."""
        await to_thread.run_sync(self.check)
        return f"{self._path} can be written"

    def check(self) -> None:
        """Whether there is a place for it, and what writes it."""
        _library()
        folder = self._path.parent
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(f"No file can be written in {folder}", hint="Check that it is there and writable.")

    def _write(self, night: Night, pending: int) -> None:
        library = _library()
        try:
            library.write_to_textfile(str(self._path), _metrics(library, night, pending))
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be written: {error.strerror}") from error


def _metrics(library: Any, night: Night, pending: int) -> Any:
    registry = library.CollectorRegistry()

    def gauge(name: str, help_text: str, *labels: str) -> Any:
        return library.Gauge(f"bisector_{name}", help_text, labels, registry=registry)

    gauge("last_run_timestamp_seconds", "When the night's work was last done.").set(night.at.timestamp())
    gauge("last_run_duration_seconds", "How long it took.").set(night.cost.seconds)
    gauge("failed_stages", "Parts of the night's work that failed.").set(sum(not stage.ok for stage in night.stages))
    gauge("posts_pending", "Posts that are due and could not be sent yet.").set(pending)
    stream_labels = ("source", "platform")
    known = gauge("builds_known", "Builds of the stream that the history knows.", *stream_labels)
    newest = gauge("newest_build_timestamp_seconds", "When the newest build of the stream came.", *stream_labels)
    arch_labels = (*stream_labels, "arch")
    verdict = gauge("kernels", "1: the newest tested build has kernels, 0: it has not, NaN: unknown.", *arch_labels)
    good = gauge("newest_good_build_timestamp_seconds", "When the newest build with kernels came.", *arch_labels)
    for stream in night.streams:
        where = (stream.source, stream.platform)
        known.labels(*where).set(len(stream.entries))
        if stream.newest_at:
            newest.labels(*where).set(stream.newest_at.timestamp())
        for arch in stream.archs:
            verdict.labels(*where, arch.arch).set(_VALUES.get(arch.verdict.answer, float("nan")))
            if arch.pin and arch.pin.published_at:
                good.labels(*where, arch.arch).set(arch.pin.published_at.timestamp())
    return registry


_VALUES = {Answer.GOOD: 1.0, Answer.BAD: 0.0}


def _library() -> Any:
    try:
        import prometheus_client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            "Metrics need prometheus-client, which is not installed",
            hint="Install it: pip install 'bisector[metrics]'.",
        ) from error
    return prometheus_client
