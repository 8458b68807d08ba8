"""The lab as a whole: built from a cache, brought up on loopback, taken down without a trace."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date, datetime
from pathlib import Path
from typing import Final, Self

from platformdirs import user_cache_path

from . import commits
from .commits import Commit, at_night
from .distribution import BlobStorage, Front, TokenRealm
from .dockerhub import TagsApi
from .github import GitHub
from .images import Image, ImageShop
from .registry import Registry
from .scenario import Night, Scenario, Tag, tags_at
from .wheel_index import WheelIndex

REPOSITORY: Final = "vllm/vllm-openai"


class Lab:
    """Docker Hub, the wheel index and GitHub on loopback, telling one coherent story.

    Between ``start`` and ``stop``, or as a context manager:

    Attributes:
        nights: Every nightly there ever was in the scenario, family by family, oldest first.
        registry: The plain registry behind Docker Hub's front: push to it, or read it without a token.
        front: What stands for ``registry-1.docker.io``.
        realm: What stands for ``auth.docker.io``.
        storage: Where the front sends who asks for a blob.
        hub: What stands for ``hub.docker.com``.
        wheels: What stands for ``wheels.vllm.ai``.
        github: What stands for ``api.github.com``.
    """

    nights: Sequence[Night]
    registry: Registry
    front: Front
    realm: TokenRealm
    storage: BlobStorage
    hub: TagsApi
    wheels: WheelIndex
    github: GitHub

    def __init__(self, scenario: Scenario | None = None, *, cache: Path | None = None) -> None:
        self.scenario = scenario or Scenario()
        self.cache = cache or user_cache_path("bisector-lab")
        self.now = self.scenario.now
        self._tags: Sequence[Tag] = ()
        self._images: dict[str, Image] = {}
        self._open = ExitStack()

    @property
    def commits(self) -> Sequence[Commit]:
        """The whole history, oldest first."""
        return commits.history()

    def start(self) -> None:
        """Bring everything up; the first time reads some 30 MB from the package index and builds the layers.

        Raises:
            FileNotFoundError: docker-registry is not installed.
        """
        with ExitStack() as stack:
            running = self.cache / "running"
            running.mkdir(parents=True, exist_ok=True)
            _sweep(running)
            folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=running))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self.registry = Registry(folder)
            stack.callback(self.registry.close)
            self._fill()
            self._stand_in(stack)
            self._tags = ()
            self.move_to(self.scenario.now)
            self._open = stack.pop_all()

    def stop(self) -> None:
        """Take everything down; the cache stays."""
        self._open.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def move_to(self, moment: datetime) -> None:
        """Let it be another time: nights pushed since appear, tags cleaned up since are gone."""
        old = {tag.name: tag.digest for tag in self._tags}
        self.now = moment
        self._tags = tags_at(self.scenario, self.nights, moment)
        new = {tag.name: tag for tag in self._tags}
        for name in old.keys() - new.keys():
            if name != self._vanished:
                self.registry.untag(REPOSITORY, name)
        for name, tag in new.items():
            if old.get(name) != tag.digest and name != self._vanished:
                image = self._images[tag.night.digest]
                self.registry.tag(REPOSITORY, name, image.manifests[tag.platform] if tag.platform else image.index)

    def night(self, day: date | str, family: str = "nightly") -> Night:
        """The nightly of a day, such as ``2026-07-30``."""
        day = date.fromisoformat(day) if isinstance(day, str) else day
        return next(night for night in self.nights if night.date == day and night.family == family)

    def config_toml(self) -> str:
        """The configuration that points bisector here; the package index stays what it is."""
        return (
            f'[dockerhub]\napi = "{self.hub.site.url}"\nregistry = "{self.front.site.url}"\n\n'
            f'[wheels]\nbase = "{self.wheels.site.url}"\n\n'
            f'[github]\napi = "{self.github.site.url}"\n\n'
            "[registries]\nelsewhere = []\n"
        )

    @property
    def _vanished(self) -> str | None:
        day = self.scenario.vanished
        return next((night.tag for night in self.nights if night.date == day and night.family == "nightly"), None)

    def _fill(self) -> None:
        plans = self.scenario.plans()
        with ThreadPoolExecutor() as threads:  # compressing lets other threads run
            images = list(threads.map(ImageShop(self.cache).build, plans))
        for image in images:
            self.registry.push(REPOSITORY, image)
        self._images = {image.index.digest: image for image in images}
        self.nights = [
            Night(
                plan=plan,
                digest=image.index.digest,
                platforms={platform: manifest.digest for platform, manifest in image.manifests.items()},
                sizes={platform: sum(layer.size for layer in own) for platform, own in image.layers.items()},
                layer=image.vllm,
                media_type=image.index.media_type,
            )
            for plan, image in zip(plans, images, strict=True)
        ]

    def _stand_in(self, stack: ExitStack) -> None:
        scenario = self.scenario
        self.realm = TokenRealm(seconds=scenario.token_seconds, accounts=scenario.accounts)
        stack.enter_context(self.realm.site)
        self.storage = BlobStorage(self.registry)
        stack.enter_context(self.storage.site)
        self.front = Front(self.registry, self.realm, self.storage, pull_limit=scenario.pull_limit)
        stack.enter_context(self.front.site)
        self.hub = TagsApi(REPOSITORY, lambda: self._tags)
        stack.enter_context(self.hub.site)
        self.wheels = WheelIndex(self.cache, without=scenario.without_wheels, newest=lambda: at_night(self.now.date()))
        stack.enter_context(self.wheels.site)
        self.github = GitHub("vllm-project/vllm", limit=scenario.github_limit)
        stack.enter_context(self.github.site)


def _sweep(running: Path) -> None:
    """Remove what labs have left that were killed."""
    for folder in running.iterdir():
        pid = folder.name.partition("-")[0]
        if not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)
