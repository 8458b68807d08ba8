"""What a server that came up must still do: answer, answer the heaviest request, and be measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio

from bisector.boot import benchmark, requests
from bisector.boot.ports import Server
from bisector.boot.profile import Profile
from bisector.errors import Unreadable
from bisector.ports import Clock
from bisector.trials import BootOutcome, LongRequest, Pass


class ServerFailed(Exception):
    """The server did not do what it must.

    Attributes:
        reason: What, in a phrase.
        outcome: What that makes of the boot.
    """

    def __init__(self, reason: str, *, outcome: BootOutcome = BootOutcome.FAILED) -> None:
        super().__init__(reason)
        self.reason = reason
        self.outcome = outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The work for one server. Every method raises ``ServerFailed`` where it does not do it.

    Attributes:
        server: The server.
        profile: What it is served by.
        clock: Tells the time.
        tell: Is told each step.
        passes: The benchmark's passes are added here, so that those before a failure are kept.
    """

    server: Server
    profile: Profile
    clock: Clock
    tell: Callable[[str], None]
    passes: list[Pass]

    async def smoke(self) -> None:
        """A first request: exit codes and ``/health`` prove nothing."""
        reply = await self.server.ask(requests.CHAT, requests.smoke(self.profile), timeout=self.profile.timeouts.smoke)
        if requests.usage(reply) is None:
            raise ServerFailed(f"the server was healthy and failed its first request: {requests.refusal(reply)}")

    async def heaviest(self) -> LongRequest | None:
        """The longest request of the profile, to its end."""
        heaviest = self.profile.heaviest
        if heaviest is None:
            return None
        start = self.clock.monotonic()
        reply = await self.server.ask(
            requests.COMPLETIONS, requests.heavy(self.profile, heaviest), timeout=self.profile.timeouts.heaviest
        )
        seconds = self.clock.monotonic() - start
        used = requests.usage(reply)
        if used is None:
            raise ServerFailed(
                f"the heaviest request, of {heaviest.prompt_tokens:,} tokens, failed: {requests.refusal(reply)}"
            )
        if used != (heaviest.prompt_tokens, heaviest.output_tokens):
            raise ServerFailed(
                f"the heaviest request asked for {heaviest.prompt_tokens:,} and {heaviest.output_tokens:,} tokens and "
                f"became {used[0]:,} and {used[1]:,}"
            )
        self.tell(f"heaviest request, {used[0]:,} tokens in {seconds:.1f} s")
        return LongRequest(prompt_tokens=used[0], output_tokens=used[1], seconds=round(seconds, 1))

    async def benchmark(self) -> None:
        """Passes until they agree; the first only warms the server."""
        if self.profile.benchmark is None:
            return
        while not benchmark.is_settled(self.passes, self.profile.benchmark):
            ordinal = len(self.passes)
            made = await self._pass(ordinal)
            self.passes.append(made)
            kind = "warm-up" if made.warm_up else f"pass {ordinal}"
            if made.completed != made.asked:
                raise ServerFailed(f"{kind} of the benchmark completed {made.completed} of {made.asked} requests")
            self.tell(f"{kind}: TPOT {made.tpot_ms:.2f} ms, {made.throughput:.1f} tokens/s")

    async def still_healthy(self) -> None:
        """Whether it survived all that."""
        state = await self.server.state()
        reply = await self.server.ask(requests.HEALTH, None, timeout=self.profile.timeouts.smoke)
        if not state.running or reply.status != 200:  # noqa: PLR2004 - HTTP's "OK"
            raise ServerFailed("the server died under its load")

    async def _pass(self, ordinal: int) -> Pass:
        asked = self.profile.benchmark
        assert asked is not None  # noqa: S101 - only called by benchmark()
        patience = self.profile.timeouts.benchmark
        try:
            with anyio.fail_after(patience):
                ran = await self.server.run(benchmark.command(self.profile, asked, ordinal))
        except TimeoutError as error:
            reason = f"a pass of the benchmark took longer than {patience:g} s"
            raise ServerFailed(reason, outcome=BootOutcome.TIMED_OUT) from error
        if ran.exit_code != 0:
            last = " ".join(ran.output.decode(errors="replace").split())[-300:]
            raise ServerFailed(f"`vllm bench serve` failed with exit code {ran.exit_code}: {last}")
        written = await self.server.run(["cat", benchmark.result_path(ordinal)])
        try:
            return benchmark.read_pass(written.output, asked=asked.prompts, warm_up=ordinal == 0, at=self.clock.now())
        except Unreadable as error:
            raise ServerFailed(error.message) from error
