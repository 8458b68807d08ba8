"""The package index, found out when somebody asks for it: pip takes a third of a second to say where it is."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.config.sections import Config
from bisector.http import Http
from bisector.model import Build, Platform
from bisector.streams.pip_index import pip_index
from bisector.streams.pypi import PypiStream


class PackageIndex:
    """The index that is configured, or else pip's."""

    def __init__(self, config: Config, http: Http) -> None:
        self._configured = config.pypi
        self._http = http
        self._url = config.pypi.index

    async def url(self) -> str:
        """Where it is; the certificates pip trusts for it are trusted from then on."""
        if self._url is None:
            found = await pip_index()
            self._url = found.url
            if found.ca_file and self._configured.ca_file is None:
                self._http.trust(found.ca_file)
        return self._url


class IndexStream:
    """The releases of a package on that index.

    Raises:
        UnknownBuild: There can be no package of this name.
        UsageError: There are no wheels for the platform.
    """

    def __init__(self, http: Http, index: PackageIndex, *, package: str, platform: Platform) -> None:
        self._http = http
        self._index = index
        self._package = package
        self._platform = platform
        self._source = self._on("").source

    @property
    def source(self) -> str:
        """The canonical spelling: ``pypi:vllm``."""
        return self._source

    async def builds(self) -> Sequence[Build]:
        """As ``PypiStream`` gives them."""
        return await self._on(await self._index.url()).builds()

    def _on(self, url: str) -> PypiStream:
        return PypiStream(self._http, package=self._package, index_url=url, platform=self._platform)
