"""Questions to an observation that need more than its sets. Pure."""

from __future__ import annotations

from bisector.arch import gate_admits
from bisector.kernels.inventory import carries
from bisector.model import Answer, Depth, LibraryStatus, Observation, Verdict
from bisector.results import GateFinding, Question


def judge(observation: Observation, question: Question) -> Verdict:
    """Whether a build has the kernels that the question asks for."""
    return carries(observation, question.served_by.name, question.require)


def gate_finding(observation: Observation, question: Question) -> GateFinding:
    """What vLLM's gate and the kernels together mean for a device.

    The gate open and the kernels missing is the crash that users see: vLLM sends the device to DeepGEMM, and
    DeepGEMM has nothing for it (DESIGN §4).
    """
    if observation.depth is not Depth.KERNELS or observation.gate is None or not observation.gate.readable:
        return GateFinding.UNKNOWN
    admitted = gate_admits(
        question.device, capabilities=observation.gate.capabilities, families=observation.gate.families
    )
    match observation.deep_gemm.status:
        case LibraryStatus.UNREADABLE:
            return GateFinding.UNKNOWN
        case LibraryStatus.ABSENT:
            # vLLM asks whether the package can be imported before it asks the gate.
            return GateFinding.FALLBACK
        case LibraryStatus.PRESENT:
            has = carries(observation, question.served_by.name).answer is Answer.GOOD
            if admitted:
                return GateFinding.SERVED if has else GateFinding.CRASH
            return GateFinding.UNUSED if has else GateFinding.FALLBACK
