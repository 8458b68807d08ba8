"""A plugin of vLLM that injects what GPUs cannot show here: a slower step, lost kernels, the death of a process.

It is a ``vllm.general_plugins`` entry point, told what to do by environment variables of the image.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

LOST = "Assertion error (/workspace/.deps/deepgemm-src/csrc/apis/layout.hpp:60): Unknown SF transformation"


def register() -> None:
    if milliseconds := os.environ.get("INJECT_STEP_MS"):
        seconds = float(milliseconds) / 1000
        _before_each_step(lambda _: time.sleep(seconds))
    if victim := os.environ.get("INJECT_DEATH"):
        _before_each_step(_killer(victim, int(os.environ["INJECT_DEATH_STEP"])))
    if os.environ.get("INJECT_LOST_KERNELS"):
        _lose_kernels()


def _before_each_step(act: Callable[[int], None]) -> None:
    """Let something happen before each step of the model, which is told how many went before."""
    runner = import_module("vllm.v1.worker.gpu_model_runner").GPUModelRunner  # only there inside the image
    inner = runner.execute_model
    if getattr(inner, "steps", None) is not None:
        return

    def execute_model(self: Any, *arguments: Any, **options: Any) -> Any:
        act(execute_model.steps)  # type: ignore[attr-defined]
        execute_model.steps += 1  # type: ignore[attr-defined]
        return inner(self, *arguments, **options)

    execute_model.steps = 0  # type: ignore[attr-defined]
    runner.execute_model = execute_model


def _killer(victim: str, step: int) -> Callable[[int], None]:
    def act(steps: int) -> None:
        if steps == step and import_module("torch").distributed.get_rank() == 1:
            # The workers are children of the engine.
            os.kill(os.getppid() if victim == "engine" else os.getpid(), signal.SIGKILL)

    return act


def _lose_kernels() -> None:
    def load_model(*_: Any, **__: Any) -> None:
        raise RuntimeError(LOST)

    runner: Any = import_module("vllm.v1.worker.cpu_model_runner").CPUModelRunner
    runner.load_model = load_model
