"""The lines of vLLM's Dockerfile as an image's history tells them, over small layers that stand for the large ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from .layers import Layer, LayerShelf
from .scenario import Plan

SITE_PACKAGES: Final = "usr/local/lib/python3.12/dist-packages"
_LONG_AGO: Final = datetime(2026, 7, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A line of an image's history; without a layer it is an ``empty_layer``."""

    created_by: str
    layer: Layer | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What one platform of one night is built from.

    Attributes:
        shelf: Where layers are kept.
        platform: ``linux/amd64``.
        plan: The night: the base and the number of lines depend on its date, the CUDA version on its family.
        vllm: The layer with vLLM.
    """

    shelf: LayerShelf
    platform: str
    plan: Plan
    vllm: Layer

    def steps(self) -> list[Step]:
        """The history, oldest line first."""
        return [*self._base(), *self._dependencies(), *self._application(), *self._provenance()]

    @property
    def _cuda(self) -> str:
        return {"cu129-nightly": "12.9.1"}.get(self.plan.family, "13.0.2")

    @property
    def _weight(self) -> int:
        return (1 << 20) if self.platform == "linux/amd64" else 0

    def _run(self, command: str) -> str:
        arguments = f"CUDA_VERSION={self._cuda} PYTHON_VERSION=3.12 TARGETPLATFORM={self.platform}"
        return f"RUN |3 {arguments} /bin/sh -c {command} # buildkit"

    def _small(self, name: str, *paths: str, weight: int = 0) -> Layer:
        # the weight cannot be compressed: a layer that need not be read should be felt when it is
        ubuntu = "22.04" if self.plan.date < date(2026, 8, 8) else "24.04"  # upstream changed its base that day
        key = f"{name} {ubuntu} {self._cuda} {self.platform} {weight}"
        ballast = random.Random(key).randbytes(weight)
        return self.shelf.layer(key, _LONG_AGO, lambda: {path: f"{key}\n".encode() + ballast for path in paths})

    def _install(self, name: str, command: str, *paths: str, weight: int = 0) -> Step:
        return Step(created_by=self._run(command), layer=self._small(name, *paths, weight=weight))

    def _copy(self, source: str, target: str) -> Step:
        return Step(
            created_by=f"COPY {source} {target} # buildkit", layer=self._small(target, f"vllm-workspace/{target}")
        )

    def _base(self) -> list[Step]:
        machine = self.platform.removeprefix("linux/")
        return [
            Step(created_by="/bin/sh -c #(nop)  ARG RELEASE"),
            Step(
                created_by="/bin/sh -c #(nop) ADD file:5e1b9a8e in / ",
                layer=self._small("ubuntu", "etc/os-release", "usr/bin/dpkg", weight=self._weight),
            ),
            Step(created_by='/bin/sh -c #(nop)  CMD ["/bin/bash"]'),
            Step(created_by=f"ENV CUDA_VERSION={self._cuda}", env={"CUDA_VERSION": self._cuda}),
            Step(
                created_by=f"RUN |1 TARGETARCH={machine} /bin/sh -c apt-get install -y cuda-cudart # buildkit",
                layer=self._small("cudart", f"usr/local/cuda/lib64/libcudart.so.{self._cuda}", weight=self._weight),
            ),
            Step(created_by="ENV NVIDIA_VISIBLE_DEVICES=all", env={"NVIDIA_VISIBLE_DEVICES": "all"}),
        ]

    def _dependencies(self) -> list[Step]:
        site = SITE_PACKAGES
        return [
            Step(created_by="ARG CUDA_VERSION"),
            Step(created_by="WORKDIR /vllm-workspace", layer=self._small("workspace", "vllm-workspace/.keep")),
            self._install("python", "apt-get install -y python3.12-dev", "usr/bin/python3.12", weight=self._weight),
            self._install(
                "torch",
                "uv pip install --system -r /tmp/requirements/cuda.txt",
                f"{site}/torch/lib/libtorch_cuda.so",
                weight=4 * self._weight,
            ),
            self._install(
                "flashinfer",
                "uv pip install --system flashinfer-jit-cache",
                f"{site}/flashinfer/__init__.py",
                weight=self._weight,
            ),
            self._install("gdrcopy", "bash /tmp/install_gdrcopy.sh", "usr/lib/libgdrapi.so.2.5.1"),
            self._install(
                "accelerate", "uv pip install --system accelerate modelscope timm", f"{site}/accelerate/__init__.py"
            ),
            self._copy("/workspace/torch_lib_versions.txt", "torch_lib_versions.txt"),
            self._copy("/workspace/wheel.sha256", "wheel.sha256"),
        ]

    def _application(self) -> list[Step]:
        steps = [
            Step(created_by=self._run("uv pip install --system dist/*.whl --verbose"), layer=self.vllm),
            self._install("list", "uv pip list > /tmp/packages.txt", "tmp/packages.txt"),
            self._copy("/workspace/ep_kernels/wheels.sha256", "wheels.sha256"),
            # a trap of the real one: this line installs dist/*.whl as well
            self._install(
                "ep_kernels",
                "uv pip install --system ep_kernels/dist/*.whl --verbose --no-deps",
                f"{SITE_PACKAGES}/deep_ep/__init__.py",
            ),
        ]
        if self.plan.date < date(2026, 8, 5):  # upstream had one line more until then; which one is not known
            steps.append(self._install("ld", "ldconfig /usr/local/cuda/compat", "etc/ld.so.cache"))
        steps += [self._copy(name, name) for name in ("examples", "benchmarks", "collect_env.py")]
        steps.append(
            self._install(
                "kv", "uv pip install --system -r /tmp/kv_connectors.txt", f"{SITE_PACKAGES}/lmcache/__init__.py"
            )
        )
        return steps

    def _provenance(self) -> list[Step]:
        image = f"vllm/vllm-openai:{self.plan.family}-{self.plan.commit}"
        build = {"VLLM_BUILD_COMMIT": self.plan.commit, "VLLM_BUILD_PIPELINE": "release", "VLLM_IMAGE_TAG": image}
        labels = {
            "org.opencontainers.image.source": "https://github.com/vllm-project/vllm",
            "org.opencontainers.image.revision": self.plan.commit,
            "org.opencontainers.image.version": f"{self.plan.family}-{self.plan.commit}",
            "ai.vllm.build.commit": self.plan.commit,
            "ai.vllm.build.pipeline": "release",
            "ai.vllm.image.tag": image,
        }
        return [
            *(Step(created_by=f"ENV {name}={value}", env={name: value}) for name, value in build.items()),
            Step(created_by="LABEL " + " ".join(f"{name}={value}" for name, value in labels.items()), labels=labels),
            Step(created_by='ENTRYPOINT ["vllm" "serve"]'),
        ]
