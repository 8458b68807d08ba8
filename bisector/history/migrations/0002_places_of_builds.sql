-- Where a build's files are, so that it can be read again when its stream no longer lists it; why one could not be read;
-- and its place among the others.

-- JSON: {"location": {"RemoteImage": {…}}, "witness": …, "elsewhere": […]}, each place under the name of its kind. A null
-- location: the stream has no files for this platform. SQL's NULL: nobody said, as for builds met before this column.
ALTER TABLE builds ADD COLUMN places TEXT CHECK (places IS NULL OR json_valid(places));

-- The moment by which it takes its place in the stream, where that is known better than by published_at.
ALTER TABLE builds ADD COLUMN ordered_at TEXT CHECK (ordered_at GLOB '????-??-??T??:??:??.*Z');

CREATE INDEX builds_in_order ON builds (stream_id, platform, coalesce(ordered_at, published_at, ''), id);
CREATE INDEX builds_by_listing ON builds (stream_id, platform, last_listed_at);

CREATE TABLE untestable_builds (
    -- Builds that could not be looked at when somebody last tried: why, and until when that is believed.
    build_id INTEGER PRIMARY KEY REFERENCES builds (id) ON DELETE CASCADE,
    reason TEXT NOT NULL,
    tried_at TEXT NOT NULL CHECK (tried_at GLOB '????-??-??T??:??:??.*Z'),
    expires_at TEXT CHECK (expires_at GLOB '????-??-??T??:??:??.*Z') -- NULL: for good
) STRICT;
