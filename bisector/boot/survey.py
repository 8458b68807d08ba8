"""What a machine has, asked before a boot. Blocking, as Docker's SDK is.

The container's own view counts: a GPU the engine cannot hand on is none, a model that the container cannot read is
not there. So the questions are asked in a short-lived container of the image that is to be booted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import docker
import docker.errors
from docker.types import DeviceRequest, Mount

from bisector.boot.hardware import NVIDIA_SMI, Machine, Need, read_gpus
from bisector.boot.host import explanation

_MARK: Final = "--- bisector ---"
_SCRIPT: Final = f"""
cat /proc/meminfo
echo '{_MARK}'
first="$1"
if [ -d "$1" ]; then for first in "$1"/*; do break; done; fi
config="$1/config.json"
if [ -r "$1" ] && [ -e "$first" ] && {{ [ ! -e "$config" ] || [ -r "$config" ]; }}; then echo readable; fi
echo '{_MARK}'
if [ "$2" = gpus ]; then {NVIDIA_SMI[0]} "{NVIDIA_SMI[1]}" {NVIDIA_SMI[2]} 2>&1; fi
"""
_KIB_IN_GIB: Final = 1024 * 1024
_GIB: Final = 1024**3
_PATIENCE: Final = 60


def survey(
    client: docker.DockerClient,
    need: Need,
    image: str,
    mounts: Sequence[Mount],
    model: str,
    *,
    labels: Mapping[str, str],
    known: Mapping[str, str],
    local: bool,
) -> Machine:
    """What the machine has.

    Args:
        client: Its engine.
        need: What will be needed; GPUs that are not are not asked for.
        image: The image to be booted.
        mounts: What it will see of the host.
        model: The model's path in it.
        labels: For the container that is asked.
        known: GPU name → architecture.
        local: The engine runs on this machine.
    """
    disk = _free_disk(client) if local else None
    on_the_host = need.gpus > 0 and local and shutil.which(NVIDIA_SMI[0]) is not None
    try:
        asked = need.gpus > 0 and not on_the_host
        text = _ask_container(client, image, mounts, model, labels, gpus=asked)
    except docker.errors.APIError as error:
        reason = explanation(error)
        if "bind source path does not exist" in reason:
            return Machine(free_disk_gib=disk, missing=(_source(reason, mounts),))
        if need.gpus == 0:
            raise
        return Machine(free_disk_gib=disk, gpu_trouble=reason)
    memory, readable, listing = (*text.split(_MARK), "", "")[:3]
    if on_the_host:
        ran = subprocess.run(NVIDIA_SMI, capture_output=True, text=True, timeout=_PATIENCE, check=False)  # noqa: S603
        listing = ran.stdout or ran.stderr
    gpus = read_gpus(listing, known)
    return Machine(
        gpus=gpus,
        gpu_trouble=None if gpus or not need.gpus else " ".join(listing.split())[:200] or "nvidia-smi lists none",
        free_memory_gib=_available(memory),
        free_disk_gib=disk,
        missing=() if "readable" in readable else (model,),
    )


def _ask_container(
    client: docker.DockerClient,
    image: str,
    mounts: Sequence[Mount],
    model: str,
    labels: Mapping[str, str],
    *,
    gpus: bool,
) -> str:
    requests = [DeviceRequest(count=-1, capabilities=[["gpu", "utility"]])] if gpus else []
    container: Any = client.containers.create(
        image,
        [_SCRIPT, "survey", model, "gpus" if gpus else "none"],
        entrypoint=["/bin/sh", "-c"],
        labels=dict(labels),
        mounts=list(mounts),
        network_mode="none",
        security_opt=["no-new-privileges"],
        device_requests=requests,
    )
    try:
        container.start()
        container.wait(timeout=_PATIENCE)
        return bytes(container.logs()).decode(errors="replace")
    finally:
        with suppress(docker.errors.NotFound):
            container.remove(force=True, v=True)


def _free_disk(client: docker.DockerClient) -> float | None:
    try:
        room = os.statvfs(Path(client.info()["DockerRootDir"]))
    except OSError:
        return None
    return room.f_bavail * room.f_frsize / _GIB


def _available(text: str) -> float | None:
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / _KIB_IN_GIB
    return None


def _source(reason: str, mounts: Sequence[Mount]) -> str:
    sources = [str(mount["Source"]) for mount in mounts]
    return next((source for source in sources if source in reason), ", ".join(sources))
