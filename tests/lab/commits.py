"""The commits of vLLM's main branch around the loss: the known ones at their real places, some twenty a day between.

Known commits, their times and the DeepGEMM pins they set are upstream's. Where only the beginning of a hash is known,
the rest is made up; so are all commits between, from their number in the day, hence alike in every run.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Final

from .releases import BACK, BEFORE, GOOD, LOST

PIN_FILE: Final = "cmake/external_projects/deepgemm.cmake"
NIGHT_HOUR: Final = time(4, tzinfo=UTC)  # a night is built from main as it stands then

SUPPORTED: Final = "84b9c2762f5fdfa6ec1b133397e9ea460bd19152"
HEAD_OF_0730: Final = "1ad5182ba95a6f1de23b537d57b860082912b28e"
LAST_GOOD: Final = "0c64be8873307c8db5901178f00945ce41866f2d"
CULPRIT: Final = "aeeb36b1f17145975c6713242f2447bb8b98782b"
HEAD_OF_0731: Final = "bebf918044ae05f0121c05f712417e53b287e1c9"
HEAD_OF_0812: Final = "f4e9bb01de39dda517c8555640696bd9a9758be2"
LAST_BAD: Final = "34735aceda0be9d79d8f440fcb74a21825bde0b6"
FIX: Final = "025d56a11e8f9bdf614af26e5386cdd8d322aaef"
HEAD_OF_0813: Final = "2ac1f683f11cf0f526c896e5fa5e0e22ebc6ffa2"

_FIRST_DAY: Final = date(2026, 6, 28)
_LAST_DAY: Final = date(2026, 8, 18)
_SUBJECTS: Final = (
    ("[Bugfix] Fix KV cache block accounting with prefix caching", "vllm/v1/core/kv_cache_manager.py"),
    ("[Kernel] Tune fused MoE configs", "vllm/model_executor/layers/fused_moe/fused_moe.py"),
    ("[Doc] Clarify quantization support", "docs/features/quantization/README.md"),
    ("[CI] Split slow entrypoint tests", ".buildkite/test-pipeline.yaml"),
    ("[Frontend] Validate tool call arguments earlier", "vllm/entrypoints/openai/serving_chat.py"),
    ("[Model] Support multimodal inputs in one more model", "vllm/model_executor/models/registry.py"),
    ("[Core] Reduce scheduler overhead for long contexts", "vllm/v1/core/sched/scheduler.py"),
    ("[ROCm] Enable AITER for one more shape", "vllm/platforms/rocm.py"),
    ("[Misc] Remove dead code", "vllm/utils/__init__.py"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What DeepGEMM vLLM builds with: a repository and a revision in it."""

    repository: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit on main.

    Attributes:
        sha: Its hash.
        at: When it was merged, UTC.
        title: The first line of its message, which ends with its pull request: ``… (#50000)``.
        pull: The pull request's number.
        files: The paths it changed.
        pin: The DeepGEMM it builds with.
        release: The release whose content its builds are given: the one with the same DeepGEMM.
        number: How many commits after the first of the history.
    """

    sha: str
    at: datetime
    title: str
    pull: int
    files: tuple[str, ...]
    pin: Pin
    release: str
    number: int

    @property
    def version(self) -> str:
        """The version its builds call themselves."""
        base = "0.26.1" if self.at.date() < date(2026, 8, 5) else "0.27.1"
        return f"{base}.dev{self.number + 100}+g{self.sha[:9]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A commit before it has its place among the others."""

    sha: str
    at: datetime
    title: str
    pull: int
    files: tuple[str, ...]
    pin: Pin | None = None
    release: str | None = None


@cache
def history() -> Sequence[Commit]:
    """All commits, oldest first; each is the next one's only parent."""
    known = _known()
    quiet = [(_at(7, 30, 3, 41), 19), (_at(7, 31, 3, 47), 13), (_at(8, 12, 3, 32), 28), (_at(8, 13, 3, 52), 8)]
    quiet += [(_at(7, 30, 10, 21), 28), (_at(8, 12, 20, 17), 32)]  # between a known parent and its child
    invented = [
        change
        for change in _invented({change.pull for change in known})
        if not any(start <= change.at <= start + timedelta(minutes=minutes) for start, minutes in quiet)
    ]
    pin, release = _pin("deepseek-ai", "891d57b4db1071624b5c8fa0d1e51cb317fa709f"), BEFORE
    commits = []
    for number, change in enumerate(sorted([*known, *invented], key=lambda change: change.at)):
        pin, release = change.pin or pin, change.release or release
        commits.append(
            Commit(
                sha=change.sha,
                at=change.at,
                title=change.title,
                pull=change.pull,
                files=change.files,
                pin=pin,
                release=release,
                number=number,
            )
        )
    return tuple(commits)


def at_night(day: date) -> Commit:
    """The head of main from which the nightly of ``day`` is built."""
    moment = datetime.combine(day, NIGHT_HOUR)
    return history()[bisect_right([commit.at for commit in history()], moment) - 1]


def find(ref: str) -> Commit | None:
    """The commit of a full or abbreviated hash, or of the branch ``main``."""
    if ref in {"main", "HEAD"}:
        return history()[-1]
    matches = [commit for commit in history() if commit.sha.startswith(ref)]
    return matches[0] if len(matches) == 1 else None


def pin_file(pin: Pin) -> str:
    """The CMake file as it stands with this pin."""
    return f"""include(FetchContent)

if(DEFINED ENV{{DEEPGEMM_SRC_DIR}})
  set(DEEPGEMM_SRC_DIR $ENV{{DEEPGEMM_SRC_DIR}})
endif()

if(DEEPGEMM_SRC_DIR)
  FetchContent_Declare(
    deepgemm
    SOURCE_DIR ${{DEEPGEMM_SRC_DIR}}
  )
else()
  # This ref should be kept in sync with tools/install_deepgemm.sh
  FetchContent_Declare(
    deepgemm
    GIT_REPOSITORY {pin.repository}
    GIT_TAG {pin.revision}
    GIT_SUBMODULES "third-party/cutlass" "third-party/fmt"
    GIT_PROGRESS TRUE
  )
endif()

FetchContent_GetProperties(deepgemm)
message(STATUS "DeepGEMM is available at ${{deepgemm_SOURCE_DIR}}")
"""


def _known() -> list[_Change]:
    pins = (PIN_FILE, "tools/install_deepgemm.sh")
    nv_dev, kimi = _pin("deepseek-ai", "a6b593d2"), _pin("vllm-project", "f5a76426")
    header, restored = _pin("vllm-project", "e21c821f"), _pin("deepseek-ai", "8b1392b9")
    changes = (
        (SUPPORTED, _at(7, 2, 10, 33), "[Kernel] Bump DeepGEMM for SM120", 47304, pins, nv_dev, GOOD),
        (HEAD_OF_0730, _at(7, 30, 3, 41), "[Bugfix] Fix logprobs with async scheduling", 49921, (), None, None),
        (LAST_GOOD, _at(7, 30, 10, 21), "[Core] Reuse sampler buffers", 49987, (), None, None),
        (CULPRIT, _at(7, 30, 10, 49), "[Model] Support Kimi K3", 50000, pins, kimi, LOST),
        (HEAD_OF_0731, _at(7, 31, 3, 47), "[Misc] Log the attention backend once", 50112, (), None, None),
        (_full("a1657a0235"), _at(8, 4, 10, 6), "[Build] Fix DeepGEMM on CUDA 12.9", 51003, pins, header, None),
        (HEAD_OF_0812, _at(8, 12, 3, 32), "[CI] Pin a test dependency", 51990, (), None, None),
        (LAST_BAD, _at(8, 12, 20, 17), "[Doc] Update the supported models", 52027, (), None, None),
        (FIX, _at(8, 12, 20, 49), "[Kernel] Restore DeepGEMM's SM120 kernels", 52035, pins, restored, BACK),
        (HEAD_OF_0813, _at(8, 13, 3, 52), "[Frontend] Report cached tokens", 52077, (), None, None),
    )
    return [
        _Change(
            sha=sha,
            at=at,
            title=f"{title} (#{pull})",
            pull=pull,
            files=files or ("vllm/envs.py",),
            pin=pin,
            release=release,
        )
        for sha, at, title, pull, files, pin, release in changes
    ]


def _invented(taken: set[int]) -> list[_Change]:
    changes = []
    for day in range((_LAST_DAY - _FIRST_DAY).days + 1):
        midnight = datetime.combine(_FIRST_DAY, time(tzinfo=UTC)) + timedelta(days=day)
        for place in range(18 + day % 5):
            seed = hashlib.sha1(f"{midnight:%Y-%m-%d} {place}".encode(), usedforsecurity=False)
            number = int(seed.hexdigest()[:8], 16)
            title, path = _SUBJECTS[number % len(_SUBJECTS)]
            pull = 46_800 + 115 * day + 4 * place  # about as many pull requests a day as upstream has
            pull += pull in taken
            changes.append(
                _Change(
                    sha=seed.hexdigest(),
                    at=midnight + timedelta(minutes=66 * place + number % 60, seconds=number % 59),
                    title=f"{title} (#{pull})",
                    pull=pull,
                    files=(path,),
                )
            )
    return changes


def _pin(owner: str, revision: str) -> Pin:
    return Pin(repository=f"https://github.com/{owner}/DeepGEMM.git", revision=_full(revision))


def _full(beginning: str) -> str:
    return (beginning + hashlib.sha1(beginning.encode(), usedforsecurity=False).hexdigest())[:40]


def _at(month: int, day: int, hour: int, minute: int) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)
