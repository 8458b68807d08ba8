"""The registries of one run: one client a repository, so that tokens, manifests and limits are shared."""

from __future__ import annotations

from collections.abc import Mapping

from bisector.artifacts.image.artifact import ImageArtifact
from bisector.artifacts.image.client import RegistryClient
from bisector.artifacts.image.credentials import Credentials
from bisector.artifacts.image.memory import LayerMemory
from bisector.artifacts.image.reference import ImageReference, parse_reference
from bisector.http import Http
from bisector.model import RateLimit, RemoteImage


class Registries:
    """Opens images by where they are.

    Args:
        http: The door to the network.
        credentials: Who we are at each host.
        bases: Host → the address of its API, where that is a mirror's.
        memory: What is known of layers.
        verify: Read every layer that is needed to its end and check its digests.
    """

    def __init__(
        self,
        http: Http,
        *,
        credentials: Credentials,
        bases: Mapping[str, str],
        memory: LayerMemory,
        verify: bool = False,
    ) -> None:
        self._http = http
        self._credentials = credentials
        self._bases = bases
        self._memory = memory
        self._verify = verify
        self._clients: dict[tuple[str, str], RegistryClient] = {}

    def client(self, registry: str, repository: str) -> RegistryClient:
        """The client of a repository."""
        key = (registry, repository)
        if key not in self._clients:
            self._clients[key] = RegistryClient(
                self._http, registry, repository, base=self._bases.get(registry), credentials=self._credentials
            )
        return self._clients[key]

    async def open(self, image: RemoteImage) -> ImageArtifact:
        """The image at a location.

        Raises:
            UnknownBuild: There is no such tag or digest.
            Unavailable: The registry does not answer, or not us.
        """
        reference = _reference(image)
        client = self.client(image.registry, image.repository)
        digest = await client.resolve(reference)
        return ImageArtifact(
            client, digest, image.platform, name=str(reference), memory=self._memory, verify=self._verify
        )

    def rate_limits(self) -> Mapping[str, RateLimit]:
        """Host → what it last said of the pulls it still allows."""
        return {host: client.rate_limit for (host, _), client in self._clients.items() if client.rate_limit}


def _reference(image: RemoteImage) -> ImageReference:
    joint = "@" if image.reference.startswith("sha256:") else ":"
    return parse_reference(f"{image.registry}/{image.repository}{joint}{image.reference}")
