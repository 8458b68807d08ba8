-- Builds by stream, what was seen in them by content digest, and two views for people.
-- Times are ISO-8601 UTC with microseconds, so that they sort as text. Comments inside a statement stay in the schema.

PRAGMA application_id = 0x62736374; -- "bsct": tells this file from any other program's database

CREATE TABLE streams (
    -- An ordered series of builds of one thing, such as pypi:vllm.
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL UNIQUE,
    first_seen_at TEXT NOT NULL CHECK (first_seen_at GLOB '????-??-??T??:??:??.*Z'),
    last_listed_at TEXT CHECK (last_listed_at GLOB '????-??-??T??:??:??.*Z') -- NULL: read from, never listed
) STRICT;

CREATE TABLE builds (
    -- One item of a stream for one platform with one content: a tag pushed again is a second row with the same name.
    id INTEGER PRIMARY KEY,
    stream_id INTEGER NOT NULL REFERENCES streams (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    platform TEXT NOT NULL,
    spec TEXT NOT NULL, -- a spelling that names it anywhere
    digest TEXT, -- NULL until the stream or a reading tells it
    commit_id TEXT,
    published_at TEXT CHECK (published_at GLOB '????-??-??T??:??:??.*Z'),
    pin TEXT, -- the line to paste in order to use exactly this build
    marks TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(marks)),
    first_seen_at TEXT NOT NULL CHECK (first_seen_at GLOB '????-??-??T??:??:??.*Z'),
    last_seen_at TEXT NOT NULL CHECK (last_seen_at GLOB '????-??-??T??:??:??.*Z'), -- listed or read with this content
    last_listed_at TEXT CHECK (last_listed_at GLOB '????-??-??T??:??:??.*Z') -- older than the platform's newest: gone
) STRICT;

CREATE UNIQUE INDEX builds_by_content ON builds (stream_id, name, platform, coalesce(digest, ''));
CREATE INDEX builds_by_digest ON builds (digest);
CREATE INDEX builds_by_time ON builds (stream_id, platform, published_at);

CREATE TABLE observations (
    -- What was seen in one artifact, once and for all: never a judgement, and never changed.
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL,
    depth TEXT NOT NULL CHECK (depth IN ('names', 'kernels')),
    probe_version INTEGER NOT NULL,
    evidence TEXT NOT NULL,
    observed_at TEXT NOT NULL CHECK (observed_at GLOB '????-??-??T??:??:??.*Z'),
    deep_gemm_status TEXT NOT NULL,
    deep_gemm_version TEXT,
    vllm_version TEXT,
    commit_id TEXT, -- as the artifact itself says, not as its tag does
    -- the gate: NULL where there was none to read
    gate_capabilities TEXT CHECK (gate_capabilities IS NULL OR json_valid(gate_capabilities)),
    gate_families TEXT CHECK (gate_families IS NULL OR json_valid(gate_families)),
    gate_readable INTEGER CHECK (gate_readable IN (0, 1)),
    document TEXT NOT NULL CHECK (json_valid(document)), -- the whole observation; the other columns repeat parts of it
    UNIQUE (digest, depth, probe_version)
) STRICT;

CREATE TRIGGER observations_never_change
BEFORE UPDATE OF id, digest, depth, probe_version, evidence, observed_at, document ON observations
BEGIN
    SELECT raise(ABORT, 'an observation is never changed');
END;

CREATE TABLE kernels (
    -- The operations of an observation by architecture, each with its evidence as JSON lists.
    observation_id INTEGER NOT NULL REFERENCES observations (id) ON DELETE CASCADE,
    arch TEXT NOT NULL,
    op TEXT NOT NULL,
    units TEXT NOT NULL CHECK (json_valid(units)),
    entries TEXT NOT NULL CHECK (json_valid(entries)),
    PRIMARY KEY (observation_id, arch, op)
) STRICT, WITHOUT ROWID;

CREATE INDEX kernels_by_operation ON kernels (arch, op);

CREATE TABLE packages (
    -- The pinned and bundled packages of an observation.
    observation_id INTEGER NOT NULL REFERENCES observations (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (observation_id, name, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX packages_by_name ON packages (name, version);

CREATE VIEW latest_observations AS
    -- For each build that was read: what was seen, by the deepest and then newest reading of its content.
    SELECT
        streams.source,
        builds.platform,
        builds.name AS build,
        builds.published_at,
        builds.digest,
        observations.evidence,
        observations.depth,
        observations.probe_version,
        observations.deep_gemm_status,
        observations.deep_gemm_version,
        observations.vllm_version,
        coalesce(observations.commit_id, builds.commit_id) AS commit_id,
        observations.gate_capabilities,
        observations.gate_families,
        observations.gate_readable,
        builds.marks,
        observations.observed_at,
        builds.id AS build_id,
        observations.id AS observation_id
    FROM builds
    JOIN streams ON streams.id = builds.stream_id
    JOIN observations ON observations.id = (
        SELECT candidates.id
        FROM observations AS candidates
        WHERE candidates.digest = builds.digest
        ORDER BY candidates.depth = 'kernels' DESC, candidates.probe_version DESC
        LIMIT 1
    )
    ORDER BY streams.source, builds.platform, builds.published_at, builds.id;

CREATE VIEW kernel_timeline AS
    -- For each build that was read and each architecture ever seen: how many operations (NULL: the library was not read).
    SELECT
        latest.source,
        latest.platform,
        latest.build,
        latest.published_at,
        architectures.arch,
        CASE
            WHEN latest.deep_gemm_status = 'absent' THEN 0
            WHEN latest.deep_gemm_status = 'present' AND latest.depth = 'kernels' THEN (
                SELECT count(*)
                FROM kernels
                WHERE kernels.observation_id = latest.observation_id AND kernels.arch = architectures.arch
            )
        END AS operations,
        latest.deep_gemm_status AS status,
        latest.build_id
    FROM latest_observations AS latest
    CROSS JOIN (SELECT DISTINCT arch FROM kernels) AS architectures
    ORDER BY latest.source, latest.platform, latest.published_at, latest.build_id, architectures.arch;
