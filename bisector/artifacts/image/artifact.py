"""An image as an artifact: which of its layers are read, how far, and what they add up to.

The order is chosen for few bytes and a right answer:

1. The layer that installed vLLM, by the image's history, is read first, and left as soon as nothing that follows in it
   can matter. Without a hint reading begins at the top.
2. Every layer above it is read in full, because any of them may remove or replace what was found. Left out are only
   those that the history shows to be a ``COPY`` to a place outside of the system's and the environment's directories,
   such as ``/vllm-workspace/examples``; the result names them. When the digests are to be verified, none is left out.
3. If that leaves something wanted unseen, the layers below follow, downwards, until nothing more can matter. An image
   that does not hold what is wanted is therefore read to the ground: absence is only certain then.
4. A link that leads somewhere else makes the layers be read again, with that place in view.

What a layer holds is remembered by its diffID, so layers shared between builds are read once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bisector.artifacts.image.answer import answer
from bisector.artifacts.image.claims import Claims, read_claims
from bisector.artifacts.image.hints import harmless, layer_hint
from bisector.artifacts.image.layer import LayerReading
from bisector.artifacts.image.manifest import (
    LONGEST_CONFIG,
    ImageConfig,
    ImageIndex,
    ImageManifest,
    Layer,
    align,
    choose_platform,
    decode_config,
    decode_manifest,
)
from bisector.artifacts.image.memory import LayerMemory, RecentLayers
from bisector.artifacts.image.overlay import Environment, environment
from bisector.artifacts.image.read_behind import read_behind
from bisector.artifacts.image.record import LayerRecord
from bisector.artifacts.image.scope import Scope
from bisector.artifacts.image.source import BlobSource, whole
from bisector.errors import Unreadable
from bisector.model import Digest, EvidenceKind, Platform
from bisector.ports import END_OF_LAYER, FoundFiles, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What answering one selection took. Layers are counted from the lowest, which is 0.

    Attributes:
        root: The directory of packages the answer is about.
        hint: The layer the history pointed at.
        read: Layers read now, and the compressed bytes read of each.
        remembered: Layers known from before.
        left_out: Layers above the one that answers that were not read, because of what the history says of them.
        verified: No layer above the lowest one needed was left out, and each was read to its end, now or before, and
            had the digests that the image gives.
    """

    root: str
    hint: int | None
    read: Mapping[int, int]
    remembered: tuple[int, ...]
    left_out: tuple[int, ...]
    verified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    manifest: ImageManifest
    config: ImageConfig
    layers: tuple[Layer, ...]


class ImageArtifact:
    """An image for one platform.

    Args:
        source: Where its parts come from.
        digest: Its manifest, or an index that has one for the platform.
        platform: The platform wanted.
        name: What people call it, for messages.
        memory: What is known of layers.
        verify: Read every layer that is needed to its end and check its digests.
    """

    def __init__(
        self,
        source: BlobSource,
        digest: Digest,
        platform: Platform,
        *,
        name: str = "The image",
        memory: LayerMemory | None = None,
        verify: bool = False,
    ) -> None:
        self._source = source
        self._named = digest
        self._platform = platform
        self._name = name
        self._memory = memory or RecentLayers()
        self._verify = verify
        self._opened: _Image | None = None
        self.scan: Scan | None = None
        """How the last selection was answered."""

    @property
    def named_digest(self) -> Digest:
        """The digest it was asked for by, which may be that of an index."""
        return self._named

    @property
    def evidence(self) -> EvidenceKind:
        """An image: what is run, and the authority on itself."""
        return EvidenceKind.IMAGE

    @property
    def verified(self) -> bool:
        """Whether the last selection was answered from bytes whose digests were all computed."""
        return self.scan is not None and self.scan.verified

    async def digest(self) -> Digest:
        """The digest of the platform's own manifest."""
        return (await self._image()).manifest.digest

    async def claims(self) -> Claims:
        """What the image says of itself, for one small request."""
        return read_claims((await self._image()).config)

    async def select(self, selection: Selection) -> FoundFiles:
        """List and read; see above for which layers.

        Raises:
            Unreadable: The image is not what it should be, or is one that no engine takes.
            Unavailable: It cannot be reached.
        """
        image = await self._image()

        async def search(scope: Scope) -> tuple[Environment, Sequence[LayerRecord]]:
            reader = _Layers(self._source, self._memory, image.layers, selection, scope, verify=self._verify)
            return await self._search(image, reader, selection, scope), reader.top_down()

        return await answer(selection, search, digest=image.manifest.digest, name=self._name)

    async def _search(self, image: _Image, reader: _Layers, selection: Selection, scope: Scope) -> Environment:
        """Read layers until the selection can be answered."""
        top = len(image.layers) - 1
        hint = layer_hint(image.layers)
        start = top if hint is None else hint
        if not image.layers:
            raise Unreadable(f"{self._name} has no layers")
        await reader.read(start)
        root = environment(reader.top_down(), scope).root
        left_out = frozenset[int]() if self._verify else harmless(image.layers, image.config, root=root)
        for at in range(top, start, -1):
            if at not in left_out:
                await reader.read(at)
        found = environment(reader.top_down(), scope)
        lowest = start
        while lowest and not found.wanted and not selection.satisfied(found.origins.keys(), END_OF_LAYER):
            lowest -= 1
            await reader.read(lowest)
            found = environment(reader.top_down(), scope)
        skipped = tuple(at for at in range(start + 1, top + 1) if at in left_out)
        self.scan = Scan(
            root=found.root,
            hint=hint,
            read=reader.bytes_read,
            remembered=tuple(reader.remembered),
            left_out=skipped,
            verified=not skipped and all(record.verified for record in reader.top_down()),
        )
        return found

    async def _image(self) -> _Image:
        if self._opened is None:
            manifest = decode_manifest(await self._source.manifest(self._named))
            if isinstance(manifest, ImageIndex):
                chosen = choose_platform(manifest, self._platform, image=self._name)
                manifest = decode_manifest(await self._source.manifest(Digest(chosen.digest)))
            if isinstance(manifest, ImageIndex):
                raise Unreadable(f"{self._name} is an index of indexes")
            if manifest.config.size > LONGEST_CONFIG:
                raise Unreadable(f"{self._name} has a configuration of {manifest.config.size:,} bytes")
            body = await whole(self._source, Digest(manifest.config.digest), manifest.config.size)
            config = decode_config(body)
            self._opened = _Image(manifest=manifest, config=config, layers=align(manifest, config))
        return self._opened


class _Layers:
    """The records of one image's layers for one search."""

    def __init__(
        self,
        source: BlobSource,
        memory: LayerMemory,
        layers: Sequence[Layer],
        selection: Selection,
        scope: Scope,
        *,
        verify: bool,
    ) -> None:
        self._source = source
        self._memory = memory
        self._layers = layers
        self._selection = selection
        self._scope = scope
        self._verify = verify
        self._key = f"{selection.key}|{scope.key}"
        self._records: dict[int, LayerRecord] = {}
        self.bytes_read: dict[int, int] = {}
        self.remembered: list[int] = []

    def top_down(self) -> list[LayerRecord]:
        """The records so far, the topmost first."""
        return [self._records[at] for at in sorted(self._records, reverse=True)]

    async def read(self, at: int) -> None:
        """Read one layer, counted from the lowest, unless it is known."""
        layer = self._layers[at]
        known = await self._memory.get(layer.diff_id, self._key, verified=self._verify)
        if known is not None:
            self._records[at] = known
            self.remembered.append(at)
            return
        self._records[at] = record = await self._stream(layer)
        self.bytes_read[at] = record.read
        await self._memory.put(layer.diff_id, self._key, record)

    async def _stream(self, layer: Layer) -> LayerRecord:
        reading = LayerReading(
            self._selection,
            self._scope,
            diff_id=layer.diff_id if self._verify else None,
            name=f"The layer {layer.digest}",
        )
        async with self._source.blob(layer.digest, layer.size) as pieces:
            await read_behind(pieces, reading)
        return reading.finish()
