-- The proof on the hardware: containers that were booted from builds, and what was measured in them.

CREATE TABLE boots (
    -- One run of a container of a build: its phases, what its log told, why it failed if it did.
    id TEXT PRIMARY KEY,
    build_id INTEGER NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
    run_id TEXT REFERENCES runs (id) ON DELETE SET NULL,
    host TEXT NOT NULL,
    profile TEXT NOT NULL,
    arch TEXT, -- the GPUs'
    image TEXT, -- as it was pulled, by digest
    started_at TEXT NOT NULL CHECK (started_at GLOB '????-??-??T??:??:??.*Z'),
    ended_at TEXT CHECK (ended_at GLOB '????-??-??T??:??:??.*Z'), -- NULL: it runs, or its owner was killed
    outcome TEXT, -- in a word
    context INTEGER, -- the longest context it answered at, in tokens
    phases TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(phases)), -- each with its seconds
    facts TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(facts)), -- what the log told
    diagnosis TEXT CHECK (diagnosis IS NULL OR json_valid(diagnosis)), -- causes, the root first
    settings TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(settings)) -- the profile as it was
) STRICT, WITHOUT ROWID;

CREATE INDEX boots_by_build ON boots (build_id);
CREATE INDEX boots_by_run ON boots (run_id);
CREATE INDEX boots_by_start ON boots (started_at);

CREATE TABLE benchmarks (
    -- One pass of a benchmark in a boot; the first of them warms up.
    boot_id TEXT NOT NULL REFERENCES boots (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    warm_up INTEGER NOT NULL CHECK (warm_up IN (0, 1)),
    at TEXT NOT NULL CHECK (at GLOB '????-??-??T??:??:??.*Z'),
    asked INTEGER NOT NULL, -- requests sent
    completed INTEGER NOT NULL, -- requests answered; fewer than asked: no measurement
    tpot_ms REAL, -- mean time per output token
    ttft_ms REAL, -- mean time to the first token
    throughput REAL, -- output tokens per second
    raw TEXT NOT NULL CHECK (json_valid(raw)), -- as the tool wrote it
    PRIMARY KEY (boot_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE VIEW boot_results AS
    -- Every boot, the newest first: of which build, where, how it ended, and the root cause where it failed.
    SELECT
        boots.id AS boot,
        streams.source,
        builds.platform,
        builds.name AS build,
        builds.published_at,
        boots.arch,
        boots.host,
        boots.profile,
        boots.outcome,
        json_extract(boots.diagnosis, '$[0].id') AS cause,
        json_extract(boots.diagnosis, '$[0].title') AS cause_title,
        boots.context,
        boots.started_at,
        boots.ended_at,
        boots.run_id AS run,
        boots.build_id
    FROM boots
    JOIN builds ON builds.id = boots.build_id
    JOIN streams ON streams.id = builds.stream_id
    ORDER BY boots.started_at DESC, boots.id DESC;

CREATE VIEW benchmark_trend AS
    -- The median and range of each boot's warm and complete passes, in order of the builds' publication.
    WITH passes AS (
        SELECT
            boot_id, tpot_ms, ttft_ms, throughput,
            count(*) OVER (PARTITION BY boot_id) AS passes,
            row_number() OVER (PARTITION BY boot_id ORDER BY tpot_ms) AS tpot_rank,
            row_number() OVER (PARTITION BY boot_id ORDER BY ttft_ms) AS ttft_rank,
            row_number() OVER (PARTITION BY boot_id ORDER BY throughput) AS throughput_rank
        FROM benchmarks
        WHERE warm_up = 0 AND completed = asked
            AND tpot_ms IS NOT NULL AND ttft_ms IS NOT NULL AND throughput IS NOT NULL
    ),
    medians AS (
        SELECT
            boot_id,
            passes,
            avg(tpot_ms) FILTER (WHERE tpot_rank IN ((passes + 1) / 2, passes / 2 + 1)) AS tpot_ms,
            min(tpot_ms) AS tpot_ms_best,
            max(tpot_ms) AS tpot_ms_worst,
            avg(ttft_ms) FILTER (WHERE ttft_rank IN ((passes + 1) / 2, passes / 2 + 1)) AS ttft_ms,
            avg(throughput) FILTER (WHERE throughput_rank IN ((passes + 1) / 2, passes / 2 + 1)) AS throughput
        FROM passes
        GROUP BY boot_id, passes
    )
    SELECT
        results.source,
        results.platform,
        results.build,
        results.published_at,
        results.arch,
        results.host,
        results.profile,
        medians.passes,
        medians.tpot_ms,
        medians.tpot_ms_best,
        medians.tpot_ms_worst,
        medians.ttft_ms,
        medians.throughput,
        results.started_at,
        results.boot
    FROM medians
    JOIN boot_results AS results ON results.boot = medians.boot_id
    ORDER BY results.host, results.profile, results.source, results.published_at, results.started_at;
