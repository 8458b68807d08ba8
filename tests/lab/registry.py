"""Debian's ``docker-registry`` as a process of its own, and what is put into it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx

from .images import Image, Manifest
from .layers import Layer, sha256

PROGRAM: Final = "docker-registry"
_PATIENCE: Final = 15.0  # seconds it may take to answer


class Registry:
    """A registry on a free port of 127.0.0.1, with its storage in a folder of its own.

    Attributes:
        url: Where it is, without a slash at the end.
        pid: Its process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._storage = folder / "storage" / "docker" / "registry" / "v2"
        self._storage.mkdir(parents=True)
        self._process, port = self._started()
        self.pid = self._process.pid
        self.url = f"http://127.0.0.1:{port}"
        self._client = httpx.Client(base_url=f"{self.url}/v2/", timeout=30, trust_env=False)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def push(self, repository: str, image: Image) -> None:
        """Put an image there, under its digest only."""
        for layers in image.layers.values():
            self._shelve(repository, layers)
        for blob in image.blobs:
            self._upload(repository, blob)
        for manifest in (*image.manifests.values(), image.index):
            self._put(repository, manifest.digest, manifest)

    def tag(self, repository: str, name: str, manifest: Manifest) -> None:
        """Point a tag at a manifest that is there."""
        self._put(repository, name, manifest)

    def untag(self, repository: str, name: str) -> None:
        """Take a tag away and leave its digest; the registry's own interface knows no such thing."""
        shutil.rmtree(self._storage / "repositories" / repository / "_manifests" / "tags" / name)

    def blob(self, digest: str) -> Path:
        """The file a blob lies in, whether or not it exists."""
        hexadecimal = digest.removeprefix("sha256:")
        return self._storage / "blobs" / "sha256" / hexadecimal[:2] / hexadecimal / "data"

    def close(self) -> None:
        """End the process."""
        self._client.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _started(self) -> tuple[subprocess.Popen[bytes], int]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        configuration = self._folder / "registry.yml"
        configuration.write_text(
            "version: 0.1\n"
            "log: {level: error, accesslog: {disabled: true}}\n"
            f"storage: {{filesystem: {{rootdirectory: {self._folder / 'storage'}}}, delete: {{enabled: true}}}}\n"
            f"http: {{addr: '127.0.0.1:{port}', secret: lab}}\n"
        )
        with (self._folder / "registry.log").open("wb") as log:
            process = subprocess.Popen(
                [PROGRAM, "serve", str(configuration)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return process, port

    def _wait(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                if self._client.get("").is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.02)
        log = (self._folder / "registry.log").read_text()
        raise RuntimeError(f"docker-registry did not come up:\n{log[-2000:]}")

    def _shelve(self, repository: str, layers: Sequence[Layer]) -> None:
        # a layer is linked into the storage instead of copied through HTTP: two hundred megabytes at every start
        for layer in layers:
            target = self.blob(layer.digest)
            link = self._storage / "repositories" / repository / "_layers" / layer.digest.replace(":", "/") / "link"
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(layer.path, target)
            if not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.write_text(layer.digest)

    def _upload(self, repository: str, blob: bytes) -> None:
        digest = sha256(blob)
        if self._client.head(f"{repository}/blobs/{digest}").is_success:
            return
        place = self._client.post(f"{repository}/blobs/uploads/").raise_for_status().headers["Location"]
        self._client.put(httpx.URL(place).copy_merge_params({"digest": digest}), content=blob).raise_for_status()

    def _put(self, repository: str, reference: str, manifest: Manifest) -> None:
        self._client.put(
            f"{repository}/manifests/{reference}",
            content=manifest.content,
            headers={"Content-Type": manifest.media_type},
        ).raise_for_status()
