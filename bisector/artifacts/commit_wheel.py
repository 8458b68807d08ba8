"""From a commit to the wheel that was built of it, by an index with a folder for each commit.

https://docs.vllm.ai/en/latest/contributing/ci/nightly_builds/ describes it: ``<commit>/[<variant>/]vllm/metadata.json``
lists the wheels, their paths relative to itself and encoded for an address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec

from bisector.errors import NoBuildForPlatform, Unavailable, UnknownBuild, Unreadable, UsageError
from bisector.http import Http, host_of
from bisector.model import CommitWheel, Platform, RemoteWheel

PACKAGE: Final = "vllm"
_LIMIT = 4 << 20
_MACHINES: Mapping[Platform, str] = {Platform("linux/amd64"): "x86_64", Platform("linux/arm64"): "aarch64"}
_COMMIT = re.compile(r"[0-9a-f]{40}")
_VARIANT = re.compile(r"[a-z][a-z0-9]{0,31}")


class _Listed(msgspec.Struct):
    package_name: str
    platform_tag: str
    filename: str
    path: str


class CommitWheels:
    """An index of per-commit wheels.

    Args:
        http: The door to the network.
        base: Where its folders are, such as ``https://HOST``.
    """

    def __init__(self, http: Http, *, base: str) -> None:
        self._http = http
        self._base = base.rstrip("/")

    async def locate(self, wanted: CommitWheel) -> RemoteWheel:
        """Where the wheel of a commit lies.

        Raises:
            UnknownBuild: That is no commit, or no variant.
            NoBuildForPlatform: No wheel was built of it, or none for the platform.
            Unreadable: The list of its wheels cannot be understood.
            Unavailable: The index does not answer, or not with the list.
        """
        if not _COMMIT.fullmatch(wanted.commit) or not _VARIANT.fullmatch(wanted.variant or PACKAGE):
            raise UnknownBuild(f"There can be no wheel of {wanted.commit!r} and variant {wanted.variant!r}")
        folder = f"{wanted.commit}/{wanted.variant}" if wanted.variant else wanted.commit
        url = f"{self._base}/{folder}/{PACKAGE}/metadata.json"
        wheel = _choose(await self._listed(url, wanted), wanted)
        return RemoteWheel(url=_address(url, wheel.path, wanted))

    async def _listed(self, url: str, wanted: CommitWheel) -> Sequence[_Listed]:
        reply = await self._http.get(url, headers={"Accept": "application/json"}, limit=_LIMIT)
        match reply.status:
            case 200:
                pass
            case 403 | 404 | 410:  # storage that may not be listed says 403 for what is not there
                variant = f" with {wanted.variant}" if wanted.variant else ""
                raise NoBuildForPlatform(
                    f"No wheel was built of commit {wanted.commit[:9]}{variant}",
                    hint="Take the commit before or after it, or an image of it.",
                )
            case status:
                raise Unavailable(f"{host_of(url)} answered {status} for the wheels of commit {wanted.commit[:9]}")
        try:
            return msgspec.json.decode(reply.body, type=list[_Listed])
        except (msgspec.DecodeError, RecursionError) as exc:
            raise Unreadable(
                f"{host_of(url)} lists the wheels of commit {wanted.commit[:9]} in a form bisector does not know",
                hint="Check the address of the wheels in the configuration.",
            ) from exc


def _address(url: str, path: str, wanted: CommitWheel) -> str:
    try:
        address = urljoin(url, path)
        inside = urlsplit(address)[:2] == urlsplit(url)[:2] and urlsplit(address).path.endswith(".whl")
    except ValueError:  # no address at all, such as http://[
        address, inside = path, False
    if not inside:
        raise Unreadable(f"{host_of(url)} places the wheel of commit {wanted.commit[:9]} outside of itself")
    return address


def _choose(listed: Sequence[_Listed], wanted: CommitWheel) -> _Listed:
    if wanted.platform not in _MACHINES:
        raise UsageError(
            f"Wheels cannot be chosen for the platform {wanted.platform!r}", hint=f"Use one of: {', '.join(_MACHINES)}."
        )
    machine = f"_{_MACHINES[wanted.platform]}"
    fitting = [
        wheel
        for wheel in listed
        if wheel.package_name == PACKAGE
        and any(
            tag.startswith(("linux", "manylinux")) and tag.endswith(machine) for tag in wheel.platform_tag.split(".")
        )
    ]
    if not fitting:
        raise NoBuildForPlatform(f"No wheel was built of commit {wanted.commit[:9]} for {wanted.platform}")
    # A commit that was built twice has two; the later name is as good as the earlier, and always the same.
    return max(fitting, key=lambda wheel: wheel.filename)
