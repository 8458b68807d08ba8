-- What the observations say of each architecture: verdicts and losses, as views, so that they never disagree with them.

CREATE TABLE architectures (
    -- How much of an architecture an observation shows: operations, or kernel headers where only names were read.
    observation_id INTEGER NOT NULL REFERENCES observations (id) ON DELETE CASCADE,
    arch TEXT NOT NULL,
    operations INTEGER NOT NULL,
    PRIMARY KEY (observation_id, arch)
) STRICT, WITHOUT ROWID;

CREATE VIEW counted_architectures AS
    -- The same, counted from the documents; slow, and there to fill and to check the table.
    SELECT
        observations.id AS observation_id,
        listed.key AS arch,
        sum(json_array_length(listed.value)) AS operations
    FROM observations
    CROSS JOIN json_each(observations.document, '$.kernels') AS listed
    WHERE observations.depth = 'kernels'
    GROUP BY observations.id, listed.key
    UNION ALL
    SELECT
        observations.id,
        substr(header.value, 7, instr(substr(header.value, 7), '_') - 1) AS arch, -- impls/sm120_bf16_gemm.cuh
        count(*)
    FROM observations
    CROSS JOIN json_each(observations.document, '$.deep_gemm.headers') AS header
    WHERE observations.depth = 'names' AND header.value GLOB 'impls/sm*_*'
    GROUP BY observations.id, arch;

INSERT INTO architectures (observation_id, arch, operations)
SELECT observation_id, arch, operations FROM counted_architectures;

CREATE TRIGGER observations_are_counted
AFTER INSERT ON observations
BEGIN
    INSERT INTO architectures (observation_id, arch, operations)
    SELECT observation_id, arch, operations FROM counted_architectures WHERE observation_id = NEW.id;
END;

CREATE VIEW build_timeline AS
    -- Every build: whether its stream still has it, and how far it was read.
    SELECT
        streams.source,
        builds.platform,
        builds.name AS build,
        builds.published_at,
        CASE
            WHEN EXISTS (
                SELECT *
                FROM builds AS later
                WHERE later.stream_id = builds.stream_id AND later.name = builds.name
                    AND later.platform = builds.platform
                    AND (later.last_seen_at, later.id) > (builds.last_seen_at, builds.id)
            ) THEN 'superseded' -- its name was given to another content
            WHEN builds.last_listed_at IS NULL THEN 'unlisted' -- read, and never seen in a listing
            WHEN builds.last_listed_at < (
                SELECT max(listed.last_listed_at)
                FROM builds AS listed
                WHERE listed.stream_id = builds.stream_id AND listed.platform = builds.platform
            ) THEN 'gone'
            ELSE 'listed'
        END AS state,
        builds.digest,
        coalesce(observations.commit_id, builds.commit_id) AS commit_id,
        builds.pin,
        builds.marks,
        observations.evidence,
        observations.depth,
        observations.deep_gemm_status,
        observations.deep_gemm_version,
        CASE
            WHEN observations.deep_gemm_status <> 'present'
                THEN json_extract(observations.document, '$.deep_gemm.reason')
        END AS deep_gemm_reason,
        observations.observed_at,
        builds.first_seen_at,
        builds.last_listed_at,
        coalesce(builds.ordered_at, builds.published_at, '') AS sort_key, -- with build_id, the order of the builds
        builds.stream_id,
        builds.id AS build_id,
        observations.id AS observation_id
    FROM builds
    JOIN streams ON streams.id = builds.stream_id
    LEFT JOIN observations ON observations.id = (
        SELECT candidates.id
        FROM observations AS candidates
        WHERE candidates.digest = builds.digest
        ORDER BY candidates.depth = 'kernels' DESC, candidates.probe_version DESC
        LIMIT 1
    );

DROP VIEW kernel_timeline;

CREATE VIEW kernel_timeline AS
    -- For each build that was read and each architecture ever seen: how many operations (NULL: the library was not read).
    SELECT
        timeline.source,
        timeline.platform,
        timeline.build,
        timeline.published_at,
        seen.arch,
        CASE
            WHEN timeline.deep_gemm_status = 'absent' THEN 0
            WHEN timeline.deep_gemm_status = 'present' AND timeline.depth = 'kernels'
                THEN coalesce(architectures.operations, 0)
        END AS operations,
        timeline.deep_gemm_status AS status,
        timeline.build_id
    FROM build_timeline AS timeline
    CROSS JOIN (SELECT DISTINCT arch FROM architectures) AS seen
    LEFT JOIN architectures
        ON architectures.observation_id = timeline.observation_id AND architectures.arch = seen.arch
    WHERE timeline.observation_id IS NOT NULL
    ORDER BY timeline.source, timeline.platform, timeline.sort_key, timeline.build_id, seen.arch;

CREATE VIEW kernel_operations AS
    -- Every operation of every build that was read, by the deepest reading of it, with its evidence as JSON lists.
    SELECT
        timeline.source,
        timeline.platform,
        timeline.build,
        timeline.published_at,
        kernels.arch,
        kernels.op,
        kernels.units,
        kernels.entries,
        timeline.sort_key,
        timeline.build_id
    FROM build_timeline AS timeline
    JOIN architectures ON architectures.observation_id = timeline.observation_id
    JOIN kernels ON kernels.observation_id = architectures.observation_id AND kernels.arch = architectures.arch;

CREATE VIEW latest_verdicts AS
    -- For each build that was looked at and each architecture ever seen: whether it has kernels for it, and why.
    SELECT
        timeline.source,
        timeline.platform,
        timeline.build,
        timeline.published_at,
        seen.arch,
        CASE
            WHEN timeline.deep_gemm_status = 'absent' THEN 'bad'
            WHEN timeline.deep_gemm_status = 'present' AND architectures.operations > 0 THEN 'good'
            WHEN timeline.deep_gemm_status = 'present' THEN 'bad'
            ELSE 'untestable'
        END AS verdict,
        CASE
            WHEN timeline.deep_gemm_status = 'absent'
                THEN coalesce(timeline.deep_gemm_reason, 'not bundled')
            WHEN timeline.deep_gemm_status = 'present' AND timeline.depth = 'names'
                THEN coalesce(architectures.operations, 0) || ' kernel headers'
            WHEN timeline.deep_gemm_status = 'present' THEN coalesce(architectures.operations, 0) || ' kernels'
            WHEN timeline.deep_gemm_status = 'unreadable'
                THEN coalesce(timeline.deep_gemm_reason, 'DeepGEMM could not be read')
            ELSE untestable_builds.reason
        END AS reason,
        timeline.depth,
        timeline.evidence,
        timeline.state,
        untestable_builds.expires_at,
        coalesce(timeline.observed_at, untestable_builds.tried_at) AS looked_at,
        timeline.sort_key,
        timeline.stream_id,
        timeline.build_id,
        timeline.observation_id
    FROM build_timeline AS timeline
    CROSS JOIN (SELECT DISTINCT arch FROM architectures WHERE arch GLOB 'sm[0-9]*') AS seen
    LEFT JOIN architectures
        ON architectures.observation_id = timeline.observation_id AND architectures.arch = seen.arch
    LEFT JOIN untestable_builds
        ON untestable_builds.build_id = timeline.build_id AND timeline.observation_id IS NULL
    WHERE timeline.observation_id IS NOT NULL OR untestable_builds.build_id IS NOT NULL;

CREATE VIEW losses AS
    -- Each loss of an architecture, and its end (NULL: not yet). Where untested builds lie before it, one may be the first.
    WITH tested AS (
        SELECT
            source, platform, arch, build, published_at, verdict, sort_key, stream_id, build_id,
            lag(verdict) OVER line AS verdict_before,
            lag(build) OVER line AS build_before,
            lag(published_at) OVER line AS published_before,
            lag(sort_key) OVER line AS sort_key_before,
            lag(build_id) OVER line AS build_id_before,
            last_value(build) OVER (line ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS newest
        FROM latest_verdicts
        WHERE verdict IN ('good', 'bad') AND state <> 'superseded'
            AND sort_key <> '' -- without a date or an order a build has no neighbours, so nothing was lost in it
        WINDOW line AS (PARTITION BY source, platform, arch ORDER BY sort_key, build_id)
    ),
    changes AS (
        SELECT
            *,
            lead(build) OVER line AS regained_at,
            lead(published_at) OVER line AS regained_published_at,
            lead(build_before) OVER line AS last_bad
        FROM tested
        WHERE verdict_before IS NOT verdict
        WINDOW line AS (PARTITION BY source, platform, arch ORDER BY sort_key, build_id)
    )
    SELECT
        changes.source,
        changes.platform,
        changes.arch,
        changes.build_before AS last_good,
        changes.build AS lost_at,
        coalesce(changes.last_bad, changes.newest) AS last_bad,
        changes.regained_at,
        changes.published_before AS last_good_published_at,
        changes.published_at AS lost_published_at,
        changes.regained_published_at,
        (
            SELECT json_group_array(build)
            FROM (
                SELECT timeline.build
                FROM build_timeline AS timeline
                WHERE timeline.stream_id = changes.stream_id AND timeline.platform = changes.platform
                    AND (timeline.sort_key, timeline.build_id) > (changes.sort_key_before, changes.build_id_before)
                    AND (timeline.sort_key, timeline.build_id) < (changes.sort_key, changes.build_id)
                    AND timeline.state <> 'superseded'
                    AND (timeline.observation_id IS NULL OR timeline.deep_gemm_status = 'unreadable')
                    AND timeline.marks NOT LIKE '%"yanked"%' AND timeline.marks NOT LIKE '%"pre-release"%'
                ORDER BY timeline.sort_key, timeline.build_id
            )
        ) AS untested
    FROM changes
    WHERE changes.verdict = 'bad' AND changes.verdict_before = 'good'
    ORDER BY changes.source, changes.platform, changes.arch, changes.sort_key, changes.build_id;
