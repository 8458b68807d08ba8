"""What a build of one commit installs: a real release's files under the commit's own version."""

from __future__ import annotations

import re

from .commits import Commit
from .releases import Release, record_line

_ON_ARM = re.compile(r"vllm/(third_party/deep_gemm/(include/deep_gemm/.*|[^/]*\.py)|platforms/cuda\.py)")


def own_files(commit: Commit, release: Release) -> dict[str, bytes]:
    """The files that name the version or the commit, as a wheel built from the commit has them."""
    information = f"vllm-{commit.version}.dist-info/"
    files = {
        re.sub(r"vllm-[^/]*\.dist-info/", information, path): _renamed(content, commit, release.version)
        for path, content in release.own.items()
    }
    record = f"{information}RECORD"
    del files[record]  # it comes last, since it tells of all others
    lines = [record_line(path, content) for path, content in files.items()]
    files[record] = "".join([release.record, *lines, f"{record},,\n"]).encode()
    return files


def installed(commit: Commit, release: Release) -> dict[str, bytes]:
    """Everything in site-packages after the x86_64 wheel was installed."""
    return {**release.files, **own_files(commit, release)}


def installed_on_arm(commit: Commit, release: Release) -> dict[str, bytes]:
    """A small part of it, headers and versions without a library: arm64 is there to be told apart, not to be read."""
    headers = {path: content for path, content in release.files.items() if _ON_ARM.fullmatch(path)}
    return {**headers, **own_files(commit, release)}


def _renamed(content: bytes, commit: Commit, version: str) -> bytes:
    base, _, local = commit.version.partition("+")
    series, _, number = base.partition(".dev")
    pieces = (*map(int, series.split(".")), f"dev{number}", local)
    text = content.decode()
    text = text.replace(f"version = '{version}'", f"version = '{commit.version}'")
    text = text.replace(f"Version: {version}\n", f"Version: {commit.version}\n")
    text = re.sub(r"version_tuple = \(.*\)", f"version_tuple = {pieces}", text)
    return re.sub(r"commit_id = 'g[0-9a-f]+'", f"commit_id = 'g{commit.sha[:9]}'", text).encode()
