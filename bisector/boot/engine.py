"""An ``Engine`` over Docker's API, here or elsewhere."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from threading import Event
from typing import Any, Final, TypeVar

import docker
import docker.errors
from anyio import CapacityLimiter, to_thread
from docker.models.containers import Container
from docker.types import DeviceRequest
from docker.types import Mount as BindMount

from bisector.boot.container import DockerServer, shielded
from bisector.boot.hardware import Need, fitting_devices, shortcomings
from bisector.boot.host import Host, explanation, translated
from bisector.boot.images import pull
from bisector.boot.owner import LABEL, Owner, owner_in
from bisector.boot.ports import PORT, Launch
from bisector.boot.profile import Mount
from bisector.boot.survey import survey
from bisector.errors import LaunchRefused, NoHardware, Unavailable
from bisector.model import Location, Platform
from bisector.ports import Clock

R = TypeVar("R")

_LEASE: Final = "bisector-lease"
_BOOT: Final = f"{LABEL}.boot"
_THREADS: Final = 16
_CONFLICT: Final = 409
_A_DAY: Final = timedelta(days=1)
_NO_GPUS: Final = ("could not select device driver", "nvidia-container-cli", "unknown runtime", "nvml error")
_PORT_TAKEN: Final = ("port is already allocated", "address already in use")
_NO_FOLDER: Final = "bind source path does not exist"


class DockerEngine:
    """An engine.

    Args:
        host: Where it is.
        clock: Tells the time.
        gpus: GPU name → architecture.
    """

    def __init__(self, host: Host, *, clock: Clock, gpus: Mapping[str, str]) -> None:
        self._host = host
        self._client = host.client
        self._clock = clock
        self._gpus = gpus
        self._limiter = CapacityLimiter(_THREADS)

    @property
    def name(self) -> str:
        """As the history knows it."""
        return self._host.name

    async def pull(self, location: Location, platform: Platform, progress: Callable[[int, int], None]) -> str:
        """Have the image there; what it is called there."""
        stop = Event()
        try:
            return await self._call(partial(pull, self._client, location, platform, progress, stop.is_set))
        finally:
            stop.set()

    async def devices(self, need: Need, image: str, mounts: Sequence[Mount], model: str) -> tuple[int, ...]:
        """The GPUs to use, once the machine is known to be one for this profile."""
        binds = [_bind(mount) for mount in mounts]
        look = partial(survey, self._client, need, image, binds, model, known=self._gpus, local=self._host.local)
        machine = await self._call(partial(look, labels=self._labels(_A_DAY)))
        if found := shortcomings(machine, need):
            raise NoHardware(f"{self.name} is no machine for this profile: {'; '.join(found)}")
        return fitting_devices(machine, need)

    # --- the lease ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def hold(self, image: str, *, seconds: float) -> AsyncIterator[None]:
        """Keep everybody else's boots off the machine: a container's name can be taken only once."""
        lease = await self._call(partial(self._take_lease, image, self._labels(timedelta(seconds=seconds))))
        try:
            yield
        finally:
            await shielded(partial(_remove, lease), self._limiter)

    def _take_lease(self, image: str, labels: dict[str, str]) -> Container:
        for _ in range(3):
            try:
                return self._client.containers.create(image, name=_LEASE, labels=labels, network_mode="none")
            except docker.errors.APIError as error:
                if error.status_code != _CONFLICT:
                    raise
            with suppress(docker.errors.NotFound):
                holder = self._client.containers.get(_LEASE)
                owner = owner_in(holder.labels)
                if owner is None or not owner.is_gone(self._clock.now()):
                    raise Unavailable(_held(self.name, owner), hint="Wait until it is done, or use another --host.")
                _remove(holder)
        raise Unavailable(f"The lease on {self.name} changes hands too fast")

    async def clear(self) -> tuple[str, ...]:
        """Remove the containers of owners that are gone; the ids of their boots."""
        return await self._call(self._clear)

    def _clear(self) -> tuple[str, ...]:
        boots = []
        for container in self._client.containers.list(all=True, filters={"label": f"{LABEL}.pid"}, ignore_removed=True):
            owner = owner_in(container.labels)
            if owner is not None and owner.is_gone(self._clock.now()):
                _remove(container)
                boots += [container.labels[_BOOT]] if _BOOT in container.labels else []
        return tuple(boots)

    # --- the server --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def start(self, launch: Launch) -> AsyncIterator[DockerServer]:
        """A server, which is removed when it is left, however that happens."""
        name = f"bisector-boot-{launch.boot}"
        labels = {**self._labels(_A_DAY), _BOOT: launch.boot}
        try:
            # Not to be left half done: a container that was created while we were cancelled would be nobody's.
            container = await shielded(partial(self._start, launch, name, labels), self._limiter)
            yield DockerServer(container, engine=self.name, limiter=self._limiter)
        finally:
            await shielded(partial(self._remove_named, name), self._limiter)

    def _start(self, launch: Launch, name: str, labels: dict[str, str]) -> Container:
        options: dict[str, Any] = {"shm_size": launch.shm} if launch.shm else {"ipc_mode": "host"}
        options["ports"] = {f"{PORT}/tcp": ("127.0.0.1", launch.port)}
        if launch.memory:
            options |= {"mem_limit": launch.memory, "memswap_limit": launch.memory}
        if launch.devices:
            numbers = [str(device) for device in launch.devices]
            options["device_requests"] = [DeviceRequest(device_ids=numbers, capabilities=[["gpu"]])]
        with translated(self.name):
            try:
                container = self._client.containers.create(
                    launch.image,
                    list(launch.arguments),
                    name=name,
                    labels=labels,
                    environment=dict(launch.environment),
                    mounts=[_bind(mount) for mount in launch.mounts],
                    security_opt=["no-new-privileges"],
                    **options,
                )
                container.start()
            except docker.errors.APIError as error:
                raise _refusal(error, self.name, launch) from error
            return container

    def _remove_named(self, name: str) -> None:
        with translated(self.name), suppress(docker.errors.NotFound):
            _remove(self._client.containers.get(name))

    def _labels(self, believed: timedelta) -> dict[str, str]:
        now = self._clock.now()
        return Owner(machine=socket.gethostname(), pid=os.getpid(), since=now, until=now + believed).labels

    async def _call(self, function: Callable[[], R]) -> R:
        with translated(self.name):
            return await to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._limiter)


def _bind(mount: Mount) -> BindMount:
    # A mount, unlike a volume option, is refused where the folder is not there, instead of making an empty one.
    return BindMount(target=mount.container, source=mount.host, type="bind", read_only=not mount.writable)


def _remove(container: Container) -> None:
    with suppress(docker.errors.NotFound):
        container.remove(force=True, v=True)


def _held(machine: str, owner: Owner | None) -> str:
    if owner is None:
        return f"{machine} is held by a container named {_LEASE} that is not bisector's"
    since: datetime = owner.since
    return f"{machine} is held by process {owner.pid} on {owner.machine} since {since:%Y-%m-%d %H:%M:%S} UTC"


def _refusal(error: docker.errors.APIError, machine: str, launch: Launch) -> Exception:
    reason = explanation(error)
    lower = reason.lower()
    if any(sign in lower for sign in _NO_GPUS):
        return NoHardware(f"{machine} cannot give a container its GPUs: {reason}")
    if _NO_FOLDER in lower:
        return NoHardware(f"{machine} has not what is to be mounted: {reason}")
    if any(sign in lower for sign in _PORT_TAKEN):
        return Unavailable(f"Port {launch.port} of {machine} is taken", hint="Leave out `port` in the profile.")
    if isinstance(error, docker.errors.NotFound) or error.status_code == 400:  # noqa: PLR2004 - a bad request
        return LaunchRefused(f"{launch.image} cannot be started: {reason}")
    return error
