"""The local Docker engine, as far as images are looked at: what it has, and the files of one.

Everything here blocks, and belongs into a thread. A container is made of an image and never started; the engine gives
its files as tar archives. https://docs.docker.com/reference/api/engine/version/v1.41/
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from bisector.artifacts.image.manifest import ImageConfig
from bisector.artifacts.image.reference import is_digest
from bisector.errors import Unavailable, UnknownBuild, Unreadable
from bisector.model import Digest

if TYPE_CHECKING:
    # Docker's SDK costs a fifth of a second to import, which most commands need not pay.
    import docker
    import requests

LABEL: Final = "bisector"
"""On every container made here, so that a person can tell where it comes from."""

_OK: Final = 200
_NOT_FOUND: Final = 404
_PIECE: Final = 1 << 20
_LINK: Final = 1 << 27
"""The bit of Go's FileMode that marks a symbolic link."""
_MANIFEST: Final = frozenset(
    {"application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"}
)
_PULL: Final = "`docker pull` it first, or leave out docker: to read it where it is published."
_T = TypeVar("_T")


class _Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    digest: str = ""
    media_type: str = ""


class _RootFs(msgspec.Struct, frozen=True):
    layers: list[str] = msgspec.field(name="Layers", default=[])


class InspectedImage(msgspec.Struct, frozen=True, rename="pascal"):
    """What the engine tells of an image."""

    id: str
    repo_tags: list[str] | None = None
    repo_digests: list[str] | None = None
    architecture: str = "amd64"
    created: str | None = None
    config: dict[str, Any] | None = None
    root_fs: _RootFs = msgspec.field(name="RootFS", default=_RootFs())
    descriptor: _Descriptor | None = None

    @property
    def digest(self) -> Digest:
        """A content address of the image for its platform.

        It is the digest of the image's own manifest where the engine tells it: one that keeps images as they are in
        registries does, of images that it did not choose from a list of platforms. Where such an engine only tells the
        list's, it is SHA-256 over the line ``bisector image 1`` and a line for each diffID. An engine that keeps images
        unpacked calls them by the digest of their configuration, which is taken as it is; whether the digest it
        remembers from a registry is a manifest's or a list's it does not tell.
        """
        held = self.descriptor
        if held is None and is_digest(self.id):
            return Digest(self.id)
        if held is not None and held.media_type in _MANIFEST and is_digest(held.digest):
            return Digest(held.digest)
        lines = "".join(f"{line}\n" for line in ("bisector image 1", *self.root_fs.layers))
        return Digest(f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}")

    @property
    def configuration(self) -> ImageConfig:
        """The part of it that a registry has too."""
        return _converted({"config": self.config, "created": self.created}, ImageConfig)


class _Stat(msgspec.Struct, frozen=True):
    mode: int
    link: str = msgspec.field(name="linkTarget", default="")


class Engine:
    """A connection to the engine that ``DOCKER_HOST`` or the current context names."""

    def __init__(self) -> None:
        with _understood():
            import docker  # noqa: PLC0415

            self._client: docker.DockerClient = docker.from_env()

    def close(self) -> None:
        """Let go of it."""
        self._client.close()

    def version(self) -> str:
        """Its version, as it says it."""
        with _understood():
            return str(self._client.version().get("Version", "unknown"))

    def image(self, name: str) -> InspectedImage:
        """One image, by name, digest or id.

        Raises:
            UnknownBuild: There is none.
        """
        with _understood(f"The Docker engine has no image {name}"):
            inspected = self._client.images.get(name).attrs
        return _converted(inspected, InspectedImage)

    def images(self, repository: str | None = None) -> Sequence[InspectedImage]:
        """Every image, or those that are called so."""
        with _understood():
            listed = self._client.images.list(repository)
        return [_converted(image.attrs, InspectedImage) for image in listed]

    def container(self, image: InspectedImage) -> Container:
        """A container of it; nothing is created before it is needed."""
        return Container(self._client, image)


class Container:
    """The files of an image, through a container that is never started."""

    def __init__(self, client: docker.DockerClient, image: InspectedImage) -> None:
        self._client = client
        self._image = image
        self._lock = Lock()
        self._id: str | None = None
        self._over = False
        self._real: dict[str, str | None] = {"": ""}

    def create(self) -> None:
        """Make the container, unless that was done or it is over already."""
        with self._lock:
            if self._id is not None or self._over:
                return
            with _understood(f"The Docker engine has no image {self._image.id} any more"):
                made = self._client.api.create_container(
                    self._image.id,
                    # An image without an entry point needs some command; this one is never run.
                    ["true"],
                    labels={LABEL: "inspect"},
                    network_disabled=True,
                )
            self._id = made["Id"]

    def remove(self) -> None:
        """Remove the container and whatever volumes it came with; one that is being created waits for that first."""
        import docker.errors  # noqa: PLC0415

        with self._lock:
            self._over = True
            if self._id is None:
                return
            with _understood():
                # Somebody may have cleaned up.
                with suppress(docker.errors.NotFound):
                    self._client.api.remove_container(self._id, v=True, force=True)
                self._id = None

    def real(self, path: str) -> str | None:
        """A path without links in it, relative to the root of the image; ``None`` when there is nothing."""
        if path not in self._real:
            parent, _, name = path.rpartition("/")
            above = self.real(parent)
            self._real[path] = None if above is None else self._followed(f"{above}/{name}".strip("/"))
        return self._real[path]

    def archive(self, path: str) -> Generator[bytes, None, None]:
        """What is at a path, as a tar archive that begins with the last part of it; nothing when there is nothing.

        The engine follows links on the way, not the last one. To be closed; it may be closed early.
        """
        with _understood():
            response = self._ask("GET", path)
            with response:
                if response.status_code == _OK:
                    yield from response.iter_content(_PIECE)
                elif not _nothing_there(response):
                    raise Unavailable(f"The Docker engine does not give {path}: {_said(response)}")

    def _followed(self, path: str) -> str | None:
        with _understood():
            answer = self._ask("HEAD", path)
            if answer.status_code != _OK:
                # Only an answer with a body tells a path that leads through a file from an engine in trouble.
                for _ in self.archive(path):
                    break
                return None
        try:
            stat = msgspec.json.decode(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]), type=_Stat)
        except (KeyError, binascii.Error, msgspec.DecodeError) as exc:
            raise Unreadable(f"The Docker engine tells nothing of {path}") from exc
        return stat.link.strip("/") if stat.mode & _LINK else path

    def _ask(self, method: str, path: str) -> requests.Response:
        # The SDK's own get_archive keeps the response to itself, so that it cannot be closed early.
        api = self._client.api
        return api.request(
            method,
            f"{api.base_url}/v{api.api_version}/containers/{self._id}/archive",
            params={"path": f"/{path}"},
            headers={"Accept-Encoding": "identity"},
            stream=method == "GET",
            timeout=api.timeout,
        )


@contextmanager
def _understood(missing: str | None = None) -> Iterator[None]:
    """Tell what Docker's SDK raises as errors of bisector's own."""
    import docker.errors  # noqa: PLC0415
    import requests  # noqa: PLC0415

    try:
        yield
    except docker.errors.APIError as exc:
        if missing is not None and exc.is_client_error():
            raise UnknownBuild(missing, hint=_PULL) from exc
        raise Unavailable(f"The Docker engine answered: {exc.explanation or exc}") from exc
    except docker.errors.NullResource as exc:
        raise UnknownBuild("An image of the Docker engine needs a name", hint="Write docker:IMAGE.") from exc
    except (docker.errors.DockerException, requests.RequestException, OSError) as exc:
        raise Unavailable(
            "The Docker engine cannot be reached",
            hint="Start Docker, name another engine in DOCKER_HOST, or become a member of the group docker.",
        ) from exc


def _nothing_there(response: requests.Response) -> bool:
    return response.status_code == _NOT_FOUND or "not a directory" in _said(response).lower()


def _said(response: requests.Response) -> str:
    try:
        message: Any = response.json()["message"]
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"
    return str(message)


def _converted(value: object, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        raise Unreadable(f"The Docker engine's answer cannot be understood: {exc}") from exc
