"""Where DeepGEMM lies, by all the names it has had."""

from __future__ import annotations

import pytest

from bisector.kernels.deepgemm import find, in_site_packages, may_belong, opened, seen
from bisector.kernels.templates import Templates, find_templates
from bisector.model import LibraryStatus
from tests.kernels.elf import template

HEADER = "include/deep_gemm/impls/sm120_bf16_gemm.cuh"
OWN = "vllm/third_party/deep_gemm"


@pytest.mark.parametrize(
    ("directory", "library"),
    [
        ("deep_gemm", "deep_gemm_cpp.cpython-312-x86_64-linux-gnu.so"),
        ("deep_gemm", "deep_gemm/_C.cpython-312-x86_64-linux-gnu.so"),
        (OWN, f"{OWN}/_C.cpython-312-x86_64-linux-gnu.so"),
        (OWN, f"{OWN}/_C.cpython-312-aarch64-linux-gnu.so"),
        (OWN, f"{OWN}/_C.abi3.so"),
        (OWN, f"{OWN}/_C_extension.abi3.so"),
        (OWN, f"{OWN}/_what_it_will_be_called_next.so"),
        ("vllm/vendored/deep_gemm", "vllm/vendored/deep_gemm/_C.abi3.so"),
    ],
)
def test_every_name_it_has_had_is_found(directory: str, library: str) -> None:
    paths = ["vllm/__init__.py", f"{directory}/__init__.py", f"{directory}/{HEADER}", library]
    place = find(paths)
    assert place is not None
    assert place.libraries == (library,)
    assert place.headers == ("impls/sm120_bf16_gemm.cuh",)
    assert place.init == f"{directory}/__init__.py"
    assert may_belong(library)
    assert may_belong(f"{directory}/{HEADER}")


@pytest.mark.parametrize(
    "path",
    [
        "vllm/_C.abi3.so",
        "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so",
        "vllm/model_executor/warmup/deep_gemm_warmup.py",
        "vllm/utils/deep_gemm.py",
        f"{OWN}/include/deep_gemm/common/sm120_utils.cuh",
        f"{OWN}/include/cute/arch/mma_sm120.hpp",
        f"{OWN}/utils/layout.py",
        "__init__.py",
        "_cffi_backend.cpython-312-x86_64-linux-gnu.so",
    ],
)
def test_what_only_sounds_like_it_is_not_listed(path: str) -> None:
    assert not may_belong(path)


def test_of_several_interpreters_copies_the_one_for_3_12_comes_first() -> None:
    paths = [f"{OWN}/_C.cpython-3{minor}-x86_64-linux-gnu.so" for minor in range(10, 15)]
    place = find([*paths, f"{OWN}/{HEADER}"])
    assert place is not None
    assert place.libraries == (paths[2], paths[0], paths[1], paths[3], paths[4])


def test_a_known_name_comes_before_an_unknown_one() -> None:
    place = find([f"{OWN}/_A.so", f"{OWN}/_C_extension.abi3.so"])
    assert place is not None
    assert place.libraries[0] == f"{OWN}/_C_extension.abi3.so"


def test_a_top_level_one_is_imported_before_vllm_s_own() -> None:
    place = find([f"{OWN}/_C.abi3.so", "deep_gemm/_C.abi3.so", "vllm/__init__.py"])
    assert place is not None
    assert place.libraries == ("deep_gemm/_C.abi3.so",)


def test_a_top_level_one_without_its_library_gives_way() -> None:
    place = find([f"{OWN}/_C.abi3.so", "deep_gemm/__init__.py", "vllm/__init__.py"])
    assert place is not None
    assert place.libraries == (f"{OWN}/_C.abi3.so",)


def test_another_package_s_copy_is_not_vllm_s() -> None:
    assert find(["vllm/_version.py", "tensorrt_llm/deep_gemm/_C.abi3.so"]) is None


def test_below_a_whole_environment_the_right_one_is_chosen() -> None:
    root = "usr/local/lib/python3.12/dist-packages"
    vendored, top, other = f"{root}/{OWN}/_C.so", f"{root}/deep_gemm/_C.so", f"{root}/a/deep_gemm/_C.so"
    assert [place.libraries for place in (find([vendored, top, other]), find([vendored, other])) if place] == [
        (top,),
        (vendored,),
    ]


def test_what_a_wheel_keeps_apart_is_installed_beside_the_rest() -> None:
    path = f"vllm-0.27.0.data/purelib/{OWN}/_C.abi3.so"
    assert in_site_packages(path) == f"{OWN}/_C.abi3.so"
    assert may_belong(path)
    place = find([path, "vllm/__init__.py"])
    assert place is not None
    assert place.libraries == (path,)


def test_a_library_that_is_all_there_is_counts_only_where_that_can_be() -> None:
    assert find(["anything.so"]) is None
    place = find(["anything.so"], alone=True)
    assert place is not None
    assert place.libraries == ("anything.so",)


def test_nothing_there_is_absent() -> None:
    library = seen(find(["vllm/__init__.py", "vllm/_C.abi3.so"]))
    assert library.status is LibraryStatus.ABSENT
    assert library.reason == "DeepGEMM is not bundled"


@pytest.mark.parametrize(
    ("path", "what"), [(f"{OWN}/__init__.py", "Python files are"), (f"{OWN}/{HEADER}", "headers are")]
)
def test_everything_but_the_library_is_absent_for_another_reason(path: str, what: str) -> None:
    library = seen(find([path]))
    assert library.status is LibraryStatus.ABSENT
    assert library.reason is not None
    assert library.reason.startswith(f"DeepGEMM's {what} there, its library is not (the extension is optional")


def test_a_library_without_headers_cannot_be_told_by_names() -> None:
    library = seen(find([f"{OWN}/_C.abi3.so"]))
    assert library.status is LibraryStatus.UNREADABLE


def test_no_template_is_unreadable_and_never_absent() -> None:
    place = find([f"{OWN}/_C.abi3.so", f"{OWN}/{HEADER}"])
    assert place is not None
    library, kernels = opened(place, Templates(count=0, naming=()), "2.6.1")
    assert library.status is LibraryStatus.UNREADABLE
    assert library.reason == f"No JIT template could be read in {OWN}/_C.abi3.so"
    assert library.templates == 0
    assert not kernels


def test_templates_in_a_new_form_are_unreadable_too() -> None:
    place = find([f"{OWN}/_C.abi3.so", f"{OWN}/{HEADER}"])
    assert place is not None
    library, _ = opened(place, find_templates(template("kernels/blackwell_bf16_gemm", "blackwell_bf16_gemm")), None)
    assert library.status is LibraryStatus.UNREADABLE
    assert library.reason == f"None of the 1 JIT templates in {OWN}/_C.abi3.so names an architecture"
