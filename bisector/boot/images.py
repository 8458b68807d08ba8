"""Have an image in an engine. Blocking, as Docker's SDK is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import docker
import docker.errors

from bisector.boot.host import explanation
from bisector.errors import Unavailable, UnknownBuild, UsageError
from bisector.model import EngineImage, Location, Platform, RemoteImage


def pull(
    client: docker.DockerClient,
    location: Location,
    platform: Platform,
    progress: Callable[[int, int], None],
    stopped: Callable[[], bool],
) -> str:
    """The image's name in the engine, once it is there.

    Args:
        client: The engine.
        location: Where the image is.
        platform: Which of a list of images.
        progress: Is told bytes fetched and bytes to fetch, as far as they are known.
        stopped: Whether nobody waits for it any more; asked at every step, for a thread cannot be cancelled.

    Raises:
        UsageError: The location is no image that an engine can boot.
        UnknownBuild: There is no such image.
        Unavailable: It cannot be had now.
    """
    match location:
        case EngineImage(name=name):
            return _present(client, name)
        case RemoteImage():
            return _fetched(client, location, platform, progress, stopped)
        case _:
            raise UsageError(
                "Only an image can be booted", hint="Name an image in a registry, or docker:IMAGE for a local one."
            )


def _present(client: docker.DockerClient, name: str) -> str:
    try:
        image: Any = client.images.get(name)
    except docker.errors.ImageNotFound as error:
        raise UnknownBuild(f"The engine has no image {name}") from error
    return str(image.id)


def _fetched(
    client: docker.DockerClient,
    location: RemoteImage,
    platform: Platform,
    progress: Callable[[int, int], None],
    stopped: Callable[[], bool],
) -> str:
    by_digest = location.reference.startswith("sha256:")
    repository = f"{location.registry}/{location.repository}"
    name = f"{repository}{'@' if by_digest else ':'}{location.reference}"
    if by_digest:
        try:
            return _present(client, name)
        except UnknownBuild:
            pass
    try:
        _pull(client, repository, location.reference, platform, progress, stopped)
    except docker.errors.NotFound as error:
        raise UnknownBuild(f"There is no image {name}: {explanation(error)}") from error
    return _present(client, name)


def _pull(
    client: docker.DockerClient,
    repository: str,
    reference: str,
    platform: Platform,
    progress: Callable[[int, int], None],
    stopped: Callable[[], bool],
) -> None:
    done: dict[str, int] = {}
    whole: dict[str, int] = {}
    for event in client.api.pull(repository, tag=reference, stream=True, decode=True, platform=platform):
        if stopped():
            raise Unavailable(f"{repository}:{reference} was not pulled to its end")
        if "error" in event:
            text = " ".join(str(event["error"]).split())
            missing = "not found" in text or "manifest unknown" in text
            raise (UnknownBuild if missing else Unavailable)(f"{repository}:{reference} cannot be pulled: {text}")
        layer, detail = event.get("id", ""), event.get("progressDetail") or {}
        if event.get("status") == "Downloading" and "total" in detail:
            done[layer], whole[layer] = int(detail.get("current", 0)), int(detail["total"])
            progress(sum(done.values()), sum(whole.values()))
        elif event.get("status") == "Download complete" and layer in whole:
            done[layer] = whole[layer]
