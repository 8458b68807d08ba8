"""Builds, what was seen in them and what was asked of them: the parts that several answers share."""

from __future__ import annotations

import msgspec

from bisector.model import Build, Gate, Observation
from bisector.report.plain.envelope import Document, timestamp
from bisector.results import PackageChange, Question, Seen, TimelineEntry


def build_fields(build: Build, observation: Observation | None = None, *, commit: str | None = None) -> Document:
    """A build, and its commit: as it is published, else as it was seen in it, else ``commit``."""
    found = observation.provenance.commit if observation else commit
    return {
        "id": build.id,
        "spec": build.spec,
        "published_at": timestamp(build.published_at),
        "commit": build.commit or found,
        "digest": build.digest,
        "platform": build.platform,
        "pin": build.pin,
        "marks": list(build.marks),
    }


def seen_fields(seen: Seen | None) -> Document | None:
    """A build that was looked into."""
    return build_fields(seen.build, seen.observation) if seen else None


def entry_fields(entry: TimelineEntry) -> Document:
    """A build in its stream, with the verdict on it where there is one."""
    commit = entry.summary.commit if entry.summary else None
    return build_fields(entry.build, entry.observation, commit=commit) | {
        "verdict": entry.verdict.answer if entry.verdict else None,
        "reason": entry.verdict.reason if entry.verdict else None,
    }


def gate_fields(gate: Gate | None) -> Document | None:
    """Which devices vLLM itself sends to DeepGEMM."""
    return msgspec.to_builtins(gate) if gate else None


def operations(observation: Observation | None) -> Document:
    """Architecture → the operations that have kernels for it; empty where nothing was seen."""
    if observation is None:
        return {}
    return {arch: [kernel.op for kernel in kernels] for arch, kernels in observation.kernels.items()}


def packages(changes: tuple[PackageChange, ...]) -> list[Document]:
    """The packages that differ, each before and after."""
    return [msgspec.to_builtins(change) for change in changes]


def question_fields(question: Question) -> Document:
    """The architecture as it was asked for, whose kernels serve it, and the operations that must be there."""
    return {
        "arch": question.device.name,
        "served_by": question.served_by.name,
        "note": question.note,
        "require": list(question.require),
    }
