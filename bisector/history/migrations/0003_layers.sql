-- What layers of images hold, so that a layer shared by many images is read once.

CREATE TABLE layers (
    -- What one layer holds of what was looked for, by what it contains: a saving of bytes, not evidence.
    diff_id TEXT NOT NULL, -- the digest of the layer before it was compressed
    key TEXT NOT NULL, -- what was looked for
    verified INTEGER NOT NULL CHECK (verified IN (0, 1)), -- 1: read to its end, and its digest is right
    recorded_at TEXT NOT NULL CHECK (recorded_at GLOB '????-??-??T??:??:??.*Z'),
    record BLOB NOT NULL, -- MessagePack, compressed by zlib
    PRIMARY KEY (diff_id, key)
) STRICT;
