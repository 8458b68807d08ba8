-- What was told to people, so that nothing is told twice and nothing that is due is forgotten.

CREATE TABLE posts (
    -- One message to one receiver, kept until it is sent; the key says what it is about, and is told only once.
    id INTEGER PRIMARY KEY,
    receiver TEXT NOT NULL, -- its name in the configuration, never its address: that may hold a secret
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.*Z'),
    sent_at TEXT CHECK (sent_at GLOB '????-??-??T??:??:??.*Z'), -- NULL: due
    attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    UNIQUE (receiver, key)
) STRICT;

CREATE INDEX posts_that_are_due ON posts (receiver, id) WHERE sent_at IS NULL;
