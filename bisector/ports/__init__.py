"""The few doors through which jobs reach the rooms.

A job knows these Protocols and nothing behind them; ``wiring`` decides what stands behind each. Whatever stands there
passes the contract tests in ``tests/contracts``.
"""

from bisector.ports.listing import BuildStream, CommitHistory, ImageFacts, LocalImageFacts, LocalImages, TagSource
from bisector.ports.memory import Backlog, Boots, Catalogue, Journal, Ledger, Records
from bisector.ports.progress import BootStep, Clock, Event, Listed, Meter, Narrowed, Probed, Probing, Progress, RunBegan
from bisector.ports.reading import END_OF_LAYER, Artifact, Artifacts, FoundFiles, KernelReader, Selection
from bisector.ports.telling import Draft, Gauge, Outbox, Post, Receiver

__all__ = [
    "END_OF_LAYER",
    "Artifact",
    "Artifacts",
    "Backlog",
    "BootStep",
    "Boots",
    "BuildStream",
    "Catalogue",
    "Clock",
    "CommitHistory",
    "Draft",
    "Event",
    "FoundFiles",
    "Gauge",
    "ImageFacts",
    "Journal",
    "KernelReader",
    "Ledger",
    "Listed",
    "LocalImageFacts",
    "LocalImages",
    "Meter",
    "Narrowed",
    "Outbox",
    "Post",
    "Probed",
    "Probing",
    "Progress",
    "Receiver",
    "Records",
    "RunBegan",
    "Selection",
    "TagSource",
]
