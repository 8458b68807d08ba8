"""From an artifact to an observation."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bisector.errors import RangesUnsupported, Unreadable
from bisector.kernels.inventory import carries, gained, lost, operations
from bisector.kernels.parser import LibraryParser
from bisector.kernels.reader import Reader
from bisector.model import (
    Answer,
    CudaLibrary,
    CudaTarget,
    Depth,
    EvidenceKind,
    Gate,
    LibraryStatus,
    Package,
    Provenance,
)
from bisector.ports import KernelReader
from tests.kernels.builds import GATE, VENDORED, Holding, build
from tests.kernels.elf import deep_gemm, elf, for_archs, headers_for, instantiation, template
from tests.kernels.fatbin import ARCH_SPECIFIC, SASS, code, container

LIBRARY = f"{VENDORED}/_C.cpython-312-x86_64-linux-gnu.so"


@pytest.fixture
async def reader() -> AsyncIterator[KernelReader]:
    async with LibraryParser() as parser:
        yield Reader(parser)


async def test_names_alone_tell_which_architectures_there_are(reader: KernelReader) -> None:
    artifact = Holding(build("sm90", "sm120"))
    seen = await reader.observe(artifact, Depth.NAMES)
    assert seen.depth is Depth.NAMES
    assert seen.digest == await artifact.digest()
    assert seen.probe_version == reader.version(Depth.NAMES)
    assert seen.deep_gemm.status is LibraryStatus.PRESENT
    assert seen.deep_gemm.templates is None
    assert [carries(seen, arch).answer for arch in ("sm90", "sm100", "sm120")] == [
        Answer.GOOD,
        Answer.BAD,
        Answer.GOOD,
    ]
    assert artifact.reads == [()]


async def test_everything_is_told_of_a_whole_build(reader: KernelReader) -> None:
    artifact = Holding(build("sm90", "sm120"))
    seen = await reader.observe(artifact, Depth.KERNELS)
    assert seen.deep_gemm.status is LibraryStatus.PRESENT
    assert seen.deep_gemm.reason is None
    assert seen.deep_gemm.version == "2.6.1"
    assert seen.deep_gemm.templates == 4
    assert seen.deep_gemm.files == (LIBRARY,)
    assert seen.deep_gemm.headers == tuple(sorted(headers_for("sm90", "sm120")))
    assert list(seen.kernels) == ["sm90", "sm120"]
    assert operations(seen, "sm120") == ("bf16_gemm", "fp8_fp4_gemm_1d1d")
    assert seen.gate == Gate(capabilities=("sm90",), families=("sm100", "sm120"))
    assert seen.provenance == Provenance(version="0.27.0", commit="4bdc8a788")
    assert seen.packages == (
        Package(name="deep_gemm", version="2.6.1"),
        Package(name="torch", version="2.13.0"),
        Package(name="vllm", version="0.27.0"),
    )
    assert seen.libraries is None
    assert len(artifact.reads) == 1


@pytest.mark.parametrize("evidence", EvidenceKind)
async def test_every_kind_of_artifact_gives_the_same_kernels(reader: KernelReader, evidence: EvidenceKind) -> None:
    seen = await reader.observe(Holding(build("sm120"), evidence=evidence), Depth.KERNELS)
    assert seen.evidence is evidence
    assert operations(seen, "sm120") == ("bf16_gemm", "fp8_fp4_gemm_1d1d")


async def test_a_swapped_library_has_lost_an_architecture(reader: KernelReader) -> None:
    before = await reader.observe(Holding(build("sm90", "sm120")), Depth.KERNELS)
    after = await reader.observe(Holding(build("sm90")), Depth.KERNELS)
    assert lost(before, after, "sm120") == ("bf16_gemm", "fp8_fp4_gemm_1d1d")
    assert lost(before, after, "sm90") == ()
    assert gained(before, after, "sm120") == ()
    assert carries(after, "sm120").answer is Answer.BAD


async def test_names_that_the_compiler_stored_in_pieces_are_no_loss(reader: KernelReader) -> None:
    headers = ["scheduler/sm100_x.cuh"]
    whole = deep_gemm(template("scheduler/sm100_x", "sched::sm100_x_metadata"), b"sm100_x_metadata\0")
    split = deep_gemm(template("scheduler/sm100_x", "sched::sm100_x_metadata"), b"sm100_x_me\0tadata\0")
    before = await reader.observe(Holding(build(library=whole, headers=headers)), Depth.KERNELS)
    after = await reader.observe(Holding(build(library=split, headers=headers)), Depth.KERNELS)
    assert lost(before, after, "sm100") == gained(before, after, "sm100") == ()


async def test_a_renamed_header_is_no_loss(reader: KernelReader) -> None:
    entry = "sched::sm100_mqa_logits_metadata"
    names = ["scheduler/sm100_mqa_logits_metadata", "scheduler/sm100_mqa_logits"]
    before, after = [
        await reader.observe(
            Holding(build(library=deep_gemm(template(name, entry)), headers=[f"{name}.cuh"])), Depth.KERNELS
        )
        for name in names
    ]
    assert before.kernels != after.kernels
    assert lost(before, after, "sm100") == gained(before, after, "sm100") == ()


async def test_debugging_information_makes_no_kernels(reader: KernelReader) -> None:
    decoys = template("impls/sm120_bf16_gemm", "sm120_bf16_gemm_impl") + instantiation("sm120_other")
    library = deep_gemm(template("impls/sm90_bf16_gemm", "sm90_bf16_gemm_impl"), decoys=decoys)
    seen = await reader.observe(Holding(build(library=library, headers=headers_for("sm90", "sm120"))), Depth.KERNELS)
    assert list(seen.kernels) == ["sm90"]


async def test_no_template_is_unreadable(reader: KernelReader) -> None:
    seen = await reader.observe(
        Holding(build(library=deep_gemm(b"sm120_bf16_gemm\0"), headers=headers_for("sm120"))), Depth.KERNELS
    )
    assert seen.deep_gemm.status is LibraryStatus.UNREADABLE
    assert carries(seen, "sm120").answer is Answer.UNTESTABLE


@pytest.mark.parametrize("library", [b"garbage", for_archs("sm120")[:-100], b""], ids=["garbage", "cut", "empty"])
async def test_a_damaged_library_is_unreadable_and_the_rest_is_told(reader: KernelReader, library: bytes) -> None:
    seen = await reader.observe(Holding(build("sm120", library=library)), Depth.KERNELS)
    assert seen.deep_gemm.status is LibraryStatus.UNREADABLE
    assert seen.deep_gemm.reason is not None
    assert seen.deep_gemm.reason.startswith(f"{LIBRARY} cannot be read.")
    assert seen.deep_gemm.version == "2.6.1"
    assert seen.provenance.commit == "4bdc8a788"


async def test_a_file_that_fails_its_checksum_is_told_by_the_observation(reader: KernelReader) -> None:
    artifact = Holding(build("sm120"), damaged={LIBRARY: Unreadable("The checksum of the library is wrong")})
    seen = await reader.observe(artifact, Depth.KERNELS)
    assert seen.deep_gemm.status is LibraryStatus.UNREADABLE
    assert seen.deep_gemm.reason == "The checksum of the library is wrong"
    assert seen.deep_gemm.headers


async def test_a_server_without_ranges_is_no_observation(reader: KernelReader) -> None:
    artifact = Holding(build("sm120"), damaged={LIBRARY: RangesUnsupported("It sends whole files.")})
    with pytest.raises(RangesUnsupported):
        await reader.observe(artifact, Depth.KERNELS)


async def test_a_build_without_deep_gemm_is_told_apart_from_one_without_its_library(reader: KernelReader) -> None:
    whole = build("sm120")
    without = {path: content for path, content in whole.items() if VENDORED not in path}
    pieces = {path: content for path, content in whole.items() if path != LIBRARY}
    for depth in Depth:
        absent = await reader.observe(Holding(without), depth)
        partial = await reader.observe(Holding(pieces), depth)
        assert absent.deep_gemm.status is partial.deep_gemm.status is LibraryStatus.ABSENT
        assert absent.deep_gemm.reason == "DeepGEMM is not bundled"
        assert partial.deep_gemm.reason is not None
        assert "its library is not" in partial.deep_gemm.reason
    assert absent.gate is not None


async def test_an_unpacked_image_is_read_wherever_its_packages_lie(reader: KernelReader) -> None:
    files = build("sm120", prefix="usr/local/lib/python3.12/dist-packages/")
    seen = await reader.observe(Holding(files, evidence=EvidenceKind.FILE), Depth.KERNELS)
    assert operations(seen, "sm120") == ("bf16_gemm", "fp8_fp4_gemm_1d1d")
    assert seen.provenance.version == "0.27.0"
    assert seen.gate is not None


async def test_a_library_alone_is_read_and_said_to_be_alone(reader: KernelReader) -> None:
    library = deep_gemm(template("impls/sm120_bf16_gemm", "sm120_bf16_gemm_impl"), template("impls/sm{}_x", "sm{}_x"))
    artifact = Holding({"saved.so": library}, evidence=EvidenceKind.FILE)
    seen = await reader.observe(artifact, Depth.KERNELS)
    assert seen.deep_gemm.status is LibraryStatus.PRESENT
    assert seen.deep_gemm.reason == "Read from the library alone; headers not checked"
    assert operations(seen, "sm120") == ("bf16_gemm",)
    assert seen.gate is None
    assert seen.packages == ()
    by_name = await reader.observe(artifact, Depth.NAMES)
    assert by_name.deep_gemm.status is LibraryStatus.UNREADABLE


async def test_the_gate_of_an_older_build_is_found_where_it_stood(reader: KernelReader) -> None:
    older = GATE.replace(b"support_deep_gemm(cls)", b"is_deep_gemm_supported()").replace(b"cls.", b"current_platform.")
    files = build("sm90") | {"vllm/platforms/cuda.py": b"class CudaPlatform: ...\n", "vllm/utils/deep_gemm.py": older}
    for evidence, looks in ((EvidenceKind.WHEEL, 2), (EvidenceKind.IMAGE, 1)):
        artifact = Holding(files, evidence=evidence)
        seen = await reader.observe(artifact, Depth.KERNELS)
        assert seen.gate == Gate(capabilities=("sm90",), families=("sm100", "sm120"))
        assert len(artifact.reads) == looks


CUDA = elf({".nv_fatbin": container(code(SASS, 90, ARCH_SPECIFIC), code(SASS, 120))})


@pytest.mark.parametrize("evidence", [EvidenceKind.WHEEL, EvidenceKind.IMAGE])
async def test_the_other_libraries_are_read_on_demand(reader: KernelReader, evidence: EvidenceKind) -> None:
    files = build("sm120") | {"vllm/_C.abi3.so": CUDA, "vllm/_moe_C.abi3.so": CUDA[:-9], "vllm/host.so": elf({})}
    artifact = Holding(files, evidence=evidence)
    seen = await reader.observe(artifact, Depth.KERNELS, all_libraries=True)
    assert seen.libraries is not None
    good, damaged, host = seen.libraries
    assert good == CudaLibrary(
        path="vllm/_C.abi3.so",
        size=len(CUDA),
        targets=(CudaTarget(target="sm_90a", count=1), CudaTarget(target="sm_120", count=1)),
    )
    assert damaged.unreadable is not None
    assert damaged.unreadable.startswith("vllm/_moe_C.abi3.so cannot be read.")
    assert host == CudaLibrary(path="vllm/host.so", size=len(elf({})), targets=())
    assert len(artifact.reads) == (2 if evidence is EvidenceKind.IMAGE else 4)


async def test_another_library_that_fails_its_checksum_is_unreadable_by_itself(reader: KernelReader) -> None:
    path = "vllm/_C.abi3.so"
    artifact = Holding(build("sm120") | {path: CUDA}, damaged={path: Unreadable("Its checksum is wrong")})
    seen = await reader.observe(artifact, Depth.KERNELS, all_libraries=True)
    assert seen.deep_gemm.status is LibraryStatus.PRESENT
    assert seen.libraries == (CudaLibrary(path=path, size=len(CUDA), targets=(), unreadable="Its checksum is wrong"),)
