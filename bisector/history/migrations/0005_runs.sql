-- What people and cron asked, step by step, so that an interrupted search can go on and any can be retold.

CREATE TABLE runs (
    -- One question that was asked, from its start to its end; one that is running and has no end may have been killed.
    id TEXT PRIMARY KEY, -- its start, UTC, and some letters: sorts by time
    command TEXT NOT NULL,
    arguments TEXT NOT NULL CHECK (json_valid(arguments)), -- what it needs to be asked again
    question TEXT, -- in words
    source TEXT,
    arch TEXT,
    resumes TEXT REFERENCES runs (id) ON DELETE SET NULL, -- the run it goes on with
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started_at TEXT NOT NULL CHECK (started_at GLOB '????-??-??T??:??:??.*Z'),
    ended_at TEXT CHECK (ended_at GLOB '????-??-??T??:??:??.*Z'),
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted', 'failed')),
    outcome TEXT, -- in a word
    result TEXT CHECK (result IS NULL OR json_valid(result)), -- what was printed
    CHECK ((state = 'running') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_start ON runs (started_at);
CREATE INDEX runs_by_resumed ON runs (resumes);

CREATE TABLE run_steps (
    -- The verdicts of a run in the order in which it got them.
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    build TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('good', 'bad', 'untestable', 'infra', 'ambiguous')),
    reason TEXT NOT NULL,
    expires_at TEXT CHECK (expires_at GLOB '????-??-??T??:??:??.*Z'), -- NULL: the verdict holds for good
    from_history INTEGER NOT NULL CHECK (from_history IN (0, 1)),
    at TEXT NOT NULL CHECK (at GLOB '????-??-??T??:??:??.*Z'),
    PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE VIEW run_history AS
    -- Every run, the newest first, with how many steps it took.
    SELECT
        runs.id AS run,
        runs.command,
        runs.question,
        runs.source,
        runs.arch,
        runs.state,
        runs.outcome,
        (SELECT count(*) FROM run_steps WHERE run_steps.run_id = runs.id) AS steps,
        runs.started_at,
        runs.ended_at,
        runs.resumes,
        runs.host
    FROM runs
    ORDER BY runs.started_at DESC, runs.id DESC;
