"""The index of wheels by commit: https://docs.vllm.ai/en/latest/contributing/ci/nightly_builds/."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from . import commits, wheels
from .commits import Commit
from .website import Answer, Request, Website, as_json, ranged


class WheelIndex:
    """Serves ``/<commit>/vllm/metadata.json``, ``/nightly/vllm/metadata.json`` and the x86_64 wheels they name.

    Args:
        folder: The cache of release content.
        without: Commits it has nothing for.
        newest: The commit that ``/nightly/`` stands for.
    """

    def __init__(self, folder: Path, *, without: frozenset[str], newest: Callable[[], Commit]) -> None:
        self._folder = folder
        self._without = without
        self._newest = newest
        self.site = Website(self._answer)

    def _answer(self, request: Request) -> Answer:
        path = unquote(request.path)
        if path == "/nightly/vllm/metadata.json":
            commit = self._newest()
            return as_json(_metadata(commit, f"../../{commit.sha}/"))
        named = re.fullmatch(r"/([0-9a-f]{40})/(.+)", path)
        found = commits.find(named[1]) if named else None
        if not named or not found or found.sha in self._without:
            return _missing(request)
        return self._of_commit(request, found, named[2])

    def _of_commit(self, request: Request, commit: Commit, name: str) -> Answer:
        if name == "vllm/metadata.json":
            return as_json(_metadata(commit, "../"))
        if name != wheels.filename(commit):
            return _missing(request)
        wheel = wheels.wheel(commit, self._folder)
        return ranged(request, len(wheel), wheel.part, _headers(commit, len(wheel)))


def _headers(commit: Commit, size: int) -> Mapping[str, str]:
    return {
        "Content-Type": "binary/octet-stream",
        "ETag": f'"{commit.sha[:32]}-{size}"',
        "Last-Modified": format_datetime(commit.at.astimezone(UTC), usegmt=True),
    }


def _metadata(commit: Commit, relative: str) -> list[dict[str, Any]]:
    entries = []
    for machine in ("x86_64", "aarch64"):
        name = wheels.filename(commit, machine)
        entries.append(
            {
                "package_name": "vllm",
                "version": commit.version,
                "build_tag": None,
                "python_tag": "cp38",
                "abi_tag": "abi3",
                "platform_tag": f"manylinux_2_28_{machine}",
                "variant": None,
                "filename": name,
                "path": relative + quote(name),
            }
        )
    return entries


def _missing(request: Request) -> Answer:
    body = f"<Error><Code>NoSuchKey</Code><Key>{quote(request.path)}</Key></Error>"
    return Answer(status=404, headers={"Content-Type": "application/xml"}, body=body.encode())
