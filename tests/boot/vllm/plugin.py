"""A plugin of vLLM that injects what GPUs cannot show here: a slower engine step, and a DeepGEMM without kernels.

It is a ``vllm.general_plugins`` entry point, told what to do by environment variables of the image.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any

LOST = "Assertion error (/workspace/.deps/deepgemm-src/csrc/apis/layout.hpp:60): Unknown SF transformation"


def register() -> None:
    if milliseconds := os.environ.get("INJECT_STEP_MS"):
        _slow_down(float(milliseconds) / 1000)
    if os.environ.get("INJECT_LOST_KERNELS"):
        _lose_kernels()


def _slow_down(seconds: float) -> None:
    runner = import_module("vllm.v1.worker.gpu_model_runner").GPUModelRunner  # only there inside the image
    inner = runner.execute_model
    if getattr(inner, "slowed", False):
        return

    def execute_model(self: Any, *arguments: Any, **options: Any) -> Any:
        time.sleep(seconds)
        return inner(self, *arguments, **options)

    execute_model.slowed = True  # type: ignore[attr-defined]
    runner.execute_model = execute_model


def _lose_kernels() -> None:
    def load_model(*_: Any, **__: Any) -> None:
        raise RuntimeError(LOST)

    runner: Any = import_module("vllm.v1.worker.cpu_model_runner").CPUModelRunner
    runner.load_model = load_model
