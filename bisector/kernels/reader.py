"""Turns an artifact into an observation: opens what was selected and says what it says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from bisector.errors import RangesUnsupported, Unreadable
from bisector.kernels import deepgemm
from bisector.kernels.gate import read_gate
from bisector.kernels.packages import module_version, packages, provenance
from bisector.kernels.parser import LibraryParser
from bisector.kernels.selections import (
    GATE,
    LIBRARY,
    METADATA,
    OLDER_GATE,
    VERSION_MODULE,
    VERSIONS,
    Files,
    Kernels,
    Names,
    first,
)
from bisector.model import CudaLibrary, DeepGemm, Depth, EvidenceKind, Gate, Inventory, LibraryStatus, Observation
from bisector.ports import Artifact, FoundFiles


class Reader:
    """A `KernelReader`: looks by name, or opens DeepGEMM's library and what tells the build's origin."""

    def __init__(self, parser: LibraryParser) -> None:
        self._parser = parser

    def version(self, depth: Depth) -> int:
        """The version of the code that reads at this depth."""
        return VERSIONS[depth]

    async def observe(self, artifact: Artifact, depth: Depth, *, all_libraries: bool = False) -> Observation:
        """Read the artifact; see `KernelReader`.

        Args:
            artifact: What to read.
            depth: How far.
            all_libraries: At depth ``kernels``, also which device code every other library of vLLM carries. Each is
                read whole.

        Raises:
            Unreadable: The artifact itself is not what it should be.
            Unavailable: It cannot be reached, or libraries cannot be parsed on this machine now.
        """
        match depth:
            case Depth.NAMES:
                found = await artifact.select(Names(alone=_alone(artifact)))
                return Observation(
                    digest=found.digest,
                    depth=depth,
                    probe_version=VERSIONS[depth],
                    evidence=artifact.evidence,
                    deep_gemm=deepgemm.seen(deepgemm.find(found.listed, alone=_alone(artifact))),
                )
            case Depth.KERNELS:
                return await self._open(artifact, all_libraries=all_libraries)

    async def _open(self, artifact: Artifact, *, all_libraries: bool) -> Observation:
        await self._parser.warm()
        found, damage = await _select(artifact)
        place = deepgemm.find(found.listed, alone=_alone(artifact))
        library, kernels = await self._library(place, found, damage)
        metadata = _content(METADATA, found)
        origin = provenance(_content(VERSION_MODULE, found), metadata)
        return Observation(
            digest=found.digest,
            depth=Depth.KERNELS,
            probe_version=VERSIONS[Depth.KERNELS],
            evidence=artifact.evidence,
            deep_gemm=library,
            kernels=kernels,
            gate=await _gate(artifact, found),
            packages=packages(metadata, vllm=origin.version, deep_gemm=library.version),
            provenance=origin,
            libraries=await self._libraries(artifact, found.listed) if all_libraries else None,
        )

    async def _library(
        self, place: deepgemm.Place | None, found: FoundFiles, damage: Unreadable | None
    ) -> tuple[DeepGemm, Inventory]:
        if place is None or not place.libraries:
            return deepgemm.seen(place), {}
        version = module_version(found.contents.get(place.init or "", b""))
        path = place.libraries[0]
        try:
            if damage is not None:
                raise damage
            templates = await self._parser.templates(found.contents[path], name=path)
        except Unreadable as error:
            library = replace(deepgemm.seen(place), status=LibraryStatus.UNREADABLE, reason=error.message)
            return replace(library, version=version), {}
        return deepgemm.opened(place, templates, version)

    async def _libraries(self, artifact: Artifact, listed: Mapping[str, int]) -> tuple[CudaLibrary, ...]:
        every = [path for path in listed if path.endswith(".so")]
        wanted = [
            path
            for path in [path for path in every if LIBRARY.fullmatch(path)] or every
            if len(listed) == 1 or "deep_gemm" not in path.split("/")
        ]
        # One after the other, to hold one at a time; but an image is to be passed through only once.
        groups = [wanted] if artifact.evidence is EvidenceKind.IMAGE else [[path] for path in wanted]
        found: list[CudaLibrary] = []
        for group in groups:
            try:
                contents = (await artifact.select(Files(tuple(group)))).contents
            except RangesUnsupported:
                raise
            except Unreadable as error:
                found += [_unreadable(path, listed[path], error) for path in group]
            else:
                found += [await self._cuda_library(path, contents[path]) for path in group]
        return tuple(found)

    async def _cuda_library(self, path: str, content: bytes) -> CudaLibrary:
        try:
            targets = await self._parser.targets(content, name=path)
        except Unreadable as error:
            return _unreadable(path, len(content), error)
        return CudaLibrary(path=path, size=len(content), targets=targets)


def _unreadable(path: str, size: int, error: Unreadable) -> CudaLibrary:
    return CudaLibrary(path=path, size=size, targets=(), unreadable=error.message)


def _alone(artifact: Artifact) -> bool:
    """Whether it may be nothing but a shared library."""
    return artifact.evidence is EvidenceKind.FILE


async def _select(artifact: Artifact) -> tuple[FoundFiles, Unreadable | None]:
    """What there is to read or, when a file in it is damaged, the names alone and what is wrong."""
    alone, older_gate = _alone(artifact), artifact.evidence is EvidenceKind.IMAGE
    try:
        return await artifact.select(Kernels(alone=alone, older_gate=older_gate)), None
    except RangesUnsupported:
        raise
    except Unreadable as damage:
        return await artifact.select(Names(alone=alone)), damage


async def _gate(artifact: Artifact, found: FoundFiles) -> Gate | None:
    source, older = _content(GATE, found), first(OLDER_GATE, found.listed)
    gate = read_gate(source) if source is not None else None
    if gate is not None or source is None or older is None:
        return gate
    if older in found.contents:
        return read_gate(found.contents[older])
    return read_gate((await artifact.select(Files((older,)))).contents[older])


def _content(pattern: re.Pattern[str], found: FoundFiles) -> bytes | None:
    path = first(pattern, found.listed)
    return found.contents.get(path) if path is not None else None
