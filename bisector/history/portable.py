"""The history's tables as they travel between machines: rows name what they belong to, and are met again by name.

A row that is there already is brought up to date and never doubled, whichever of the two sides knows more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableTable:
    """One table: the columns that travel, and how a row of them is put in its place."""

    name: str
    select: str
    merge: tuple[str, ...]


_BUILD_ROW = """(
    SELECT builds.id
    FROM builds
    JOIN streams ON streams.id = builds.stream_id
    WHERE streams.source = :source AND builds.name = :build AND builds.platform = :platform
    ORDER BY builds.digest IS :digest DESC, builds.last_seen_at DESC, builds.id DESC
    LIMIT 1
)"""

_STREAMS = PortableTable(
    name="streams",
    select="SELECT source, first_seen_at, last_listed_at FROM streams ORDER BY id",
    merge=(
        """
        INSERT INTO streams (source, first_seen_at, last_listed_at)
        VALUES (:source, :first_seen_at, :last_listed_at)
        ON CONFLICT (source) DO UPDATE SET
            first_seen_at = min(first_seen_at, excluded.first_seen_at),
            last_listed_at = nullif(max(coalesce(last_listed_at, ''), coalesce(excluded.last_listed_at, '')), '')
        """,
    ),
)

_BUILDS = PortableTable(
    name="builds",
    select="""
        SELECT streams.source, builds.name AS build, builds.platform, builds.digest, builds.spec, builds.commit_id,
            builds.published_at, builds.pin, builds.marks, builds.places, builds.ordered_at, builds.first_seen_at,
            builds.last_seen_at, builds.last_listed_at
        FROM builds
        JOIN streams ON streams.id = builds.stream_id
        ORDER BY builds.id
    """,
    merge=(
        """
        UPDATE builds SET digest = :digest
        WHERE stream_id = (SELECT id FROM streams WHERE source = :source) AND name = :build AND platform = :platform
            AND digest IS NULL AND :digest IS NOT NULL
        """,
        f"""
        INSERT INTO builds (
            stream_id, name, platform, digest, spec, commit_id, published_at, pin, marks, places, ordered_at,
            first_seen_at, last_seen_at, last_listed_at
        )
        VALUES (
            (SELECT id FROM streams WHERE source = :source), :build, :platform,
            coalesce(:digest, (SELECT digest FROM builds WHERE id = {_BUILD_ROW})),
            :spec, :commit_id, :published_at, :pin, :marks, :places, :ordered_at,
            :first_seen_at, :last_seen_at, :last_listed_at
        )
        ON CONFLICT (stream_id, name, platform, coalesce(digest, '')) DO UPDATE SET
            spec = iif(excluded.last_seen_at > last_seen_at, excluded.spec, spec),
            marks = iif(excluded.last_seen_at > last_seen_at, excluded.marks, marks),
            commit_id = iif(
                excluded.last_seen_at > last_seen_at,
                coalesce(excluded.commit_id, commit_id), coalesce(commit_id, excluded.commit_id)
            ),
            published_at = iif(
                excluded.last_seen_at > last_seen_at,
                coalesce(excluded.published_at, published_at), coalesce(published_at, excluded.published_at)
            ),
            pin = iif(excluded.last_seen_at > last_seen_at, coalesce(excluded.pin, pin), coalesce(pin, excluded.pin)),
            places = iif(
                excluded.last_seen_at > last_seen_at,
                coalesce(excluded.places, places), coalesce(places, excluded.places)
            ),
            ordered_at = iif(
                excluded.last_seen_at > last_seen_at,
                coalesce(excluded.ordered_at, ordered_at), coalesce(ordered_at, excluded.ordered_at)
            ),
            first_seen_at = min(first_seen_at, excluded.first_seen_at),
            last_seen_at = max(last_seen_at, excluded.last_seen_at),
            last_listed_at = nullif(max(coalesce(last_listed_at, ''), coalesce(excluded.last_listed_at, '')), '')
        """,  # noqa: S608 - put together of the constants above
    ),
)

_UNTESTABLE = PortableTable(
    name="untestable_builds",
    select="""
        SELECT streams.source, builds.name AS build, builds.platform, builds.digest, reason, tried_at, expires_at
        FROM untestable_builds
        JOIN builds ON builds.id = untestable_builds.build_id
        JOIN streams ON streams.id = builds.stream_id
        ORDER BY build_id
    """,
    merge=(
        f"""
        INSERT INTO untestable_builds (build_id, reason, tried_at, expires_at)
        VALUES ({_BUILD_ROW}, :reason, :tried_at, :expires_at)
        ON CONFLICT (build_id) DO UPDATE SET
            reason = excluded.reason, tried_at = excluded.tried_at, expires_at = excluded.expires_at
        WHERE excluded.tried_at > untestable_builds.tried_at
        """,  # noqa: S608 - put together of the constants above
    ),
)

OBSERVATIONS = PortableTable(
    name="observations",
    select="""
        SELECT digest, depth, probe_version, evidence, observed_at, deep_gemm_status, deep_gemm_version, vllm_version,
            commit_id, gate_capabilities, gate_families, gate_readable, document
        FROM observations
        ORDER BY id
    """,
    merge=(
        """
        INSERT INTO observations (
            digest, depth, probe_version, evidence, observed_at, deep_gemm_status, deep_gemm_version, vllm_version,
            commit_id, gate_capabilities, gate_families, gate_readable, document
        )
        VALUES (
            :digest, :depth, :probe_version, :evidence, :observed_at, :deep_gemm_status, :deep_gemm_version,
            :vllm_version, :commit_id, :gate_capabilities, :gate_families, :gate_readable, :document
        )
        ON CONFLICT DO NOTHING
        """,
    ),
)
"""Kernels and packages do not travel: they are made from the documents again."""

_RUNS = PortableTable(
    name="runs",
    select="""
        SELECT id, command, arguments, question, source, arch, resumes, host, pid, started_at, ended_at, state, outcome,
            result
        FROM runs
        ORDER BY started_at, id
    """,
    merge=(
        """
        INSERT INTO runs (
            id, command, arguments, question, source, arch, resumes, host, pid, started_at, ended_at, state, outcome,
            result
        )
        VALUES (
            :id, :command, :arguments, :question, :source, :arch, (SELECT id FROM runs WHERE id = :resumes), :host,
            :pid, :started_at, :ended_at, :state, :outcome, :result
        )
        ON CONFLICT (id) DO UPDATE SET
            ended_at = excluded.ended_at, state = excluded.state, outcome = excluded.outcome, result = excluded.result
        WHERE runs.ended_at IS NULL
        """,
    ),
)

_RUN_STEPS = PortableTable(
    name="run_steps",
    select="""
        SELECT run_id, ordinal, build, verdict, reason, expires_at, from_history, at
        FROM run_steps
        ORDER BY run_id, ordinal
    """,
    merge=(
        """
        INSERT INTO run_steps (run_id, ordinal, build, verdict, reason, expires_at, from_history, at)
        VALUES (:run_id, :ordinal, :build, :verdict, :reason, :expires_at, :from_history, :at)
        ON CONFLICT DO NOTHING
        """,
    ),
)

_BOOTS = PortableTable(
    name="boots",
    select="""
        SELECT boots.id, streams.source, builds.name AS build, builds.platform, builds.digest, boots.run_id, boots.host,
            boots.profile, boots.arch, boots.image, boots.started_at, boots.ended_at, boots.outcome, boots.context,
            boots.phases, boots.facts, boots.diagnosis, boots.settings
        FROM boots
        JOIN builds ON builds.id = boots.build_id
        JOIN streams ON streams.id = builds.stream_id
        ORDER BY boots.started_at, boots.id
    """,
    merge=(
        f"""
        INSERT INTO boots (
            id, build_id, run_id, host, profile, arch, image, started_at, ended_at, outcome, context, phases, facts,
            diagnosis, settings
        )
        VALUES (
            :id, {_BUILD_ROW}, (SELECT id FROM runs WHERE id = :run_id), :host, :profile, :arch, :image, :started_at,
            :ended_at, :outcome, :context, :phases, :facts, :diagnosis, :settings
        )
        ON CONFLICT (id) DO UPDATE SET
            ended_at = excluded.ended_at, outcome = excluded.outcome, context = excluded.context,
            phases = excluded.phases, facts = excluded.facts, diagnosis = excluded.diagnosis
        WHERE boots.ended_at IS NULL
        """,  # noqa: S608 - put together of the constants above
    ),
)

_BENCHMARKS = PortableTable(
    name="benchmarks",
    select="""
        SELECT boot_id, ordinal, warm_up, at, asked, completed, tpot_ms, ttft_ms, throughput, raw
        FROM benchmarks
        ORDER BY boot_id, ordinal
    """,
    merge=(
        """
        INSERT INTO benchmarks (boot_id, ordinal, warm_up, at, asked, completed, tpot_ms, ttft_ms, throughput, raw)
        VALUES (:boot_id, :ordinal, :warm_up, :at, :asked, :completed, :tpot_ms, :ttft_ms, :throughput, :raw)
        ON CONFLICT DO NOTHING
        """,
    ),
)

_POSTS = PortableTable(
    name="posts",
    select="SELECT receiver, key, body, created_at, sent_at, attempts, last_error FROM posts ORDER BY id",
    merge=(
        """
        INSERT INTO posts (receiver, key, body, created_at, sent_at, attempts, last_error)
        VALUES (:receiver, :key, :body, :created_at, :sent_at, :attempts, :last_error)
        ON CONFLICT (receiver, key) DO UPDATE SET
            sent_at = coalesce(sent_at, excluded.sent_at), attempts = max(attempts, excluded.attempts)
        """,
    ),
)

TABLES = (
    *(_STREAMS, _BUILDS, _UNTESTABLE, OBSERVATIONS),
    *(_RUNS, _RUN_STEPS, _BOOTS, _BENCHMARKS, _POSTS),
)
"""In an order in which each row finds what it belongs to. Layers stay behind: they save bytes, and prove nothing."""
