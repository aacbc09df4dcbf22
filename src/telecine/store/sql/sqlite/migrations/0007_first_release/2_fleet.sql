-- What stands around the work: workers, artifacts, subjects, keys, logs, locks, archive.

create table worker (
    id integer primary key autoincrement,
    name text not null,
    hostname text not null,
    kind text not null check (kind in ('local', 'remote')),
    release text not null,
    labels text not null,
    lanes text not null,
    capabilities text not null,
    metadata text not null,
    mode text not null check (mode in ('active', 'draining', 'disabled')),
    slots integer not null,
    load integer not null default 0,
    done integer not null default 0,
    failed integer not null default 0,
    -- Together they tell, on the same machine, whether the process still lives.
    boot_id text,
    pid_space text,
    pid integer,
    pid_started integer,
    -- The last claim that was granted something, so that its repeat is not granted more.
    request text,
    registered_at integer not null,
    beat_at integer not null,
    revoked_at integer,
    gone_at integer
);
create index worker_here on worker (boot_id) where gone_at is null;
create index worker_live on worker (id) where gone_at is null;

-- When the sweep last saw that a lane with patient tasks was served: their patience counts from then. Other lanes have no row.
create table lane_seen (
    lane text primary key,
    at integer not null
);

create table artifact (
    id integer primary key autoincrement,
    job_id integer not null,
    -- Null: carried over from another job's version, by reference.
    task_id integer,
    token integer not null,
    name text not null,
    -- The place, which must be known for as long as the version, hence longer than the task.
    stage text not null,
    position integer not null,
    stage_version integer not null,
    key text,
    size integer,
    sha256 text,
    value text,
    facts text,
    version_id integer,
    created_at integer not null,
    unique (task_id, name),
    check ((key is null) = (sha256 is null)),
    check (task_id is not null or version_id is not null)
);
create index artifact_job on artifact (job_id);
create index artifact_version on artifact (version_id) where version_id is not null;
-- Serves retention: bytes are free when no row names their key.
create index artifact_key on artifact (key) where key is not null;

-- Bytes that may be deleted if no artifact names them: a key, or all that lies under one that ends in a slash.
create table freed (
    key text primary key,
    at integer not null
);

create table subject (
    kind text not null,
    id text not null,
    owner text not null,
    facts text not null default '{}',
    current_version integer,
    created_at integer not null,
    updated_at integer not null,
    primary key (kind, id)
);
-- Serve the lists: newest first, of all or of an owner.
create index subject_kind on subject (kind, created_at, id);
create index subject_owner on subject (owner, kind, created_at, id) where owner <> '';

create table subject_version (
    id integer primary key autoincrement,
    kind text not null,
    subject_id text not null,
    number integer not null,
    job_id integer not null,
    keep integer not null default 0,
    published_at integer not null,
    -- When another version took its place; null while it is shown.
    left_at integer,
    unique (kind, subject_id, number)
);
-- Serves retention: versions that nobody shows or keeps.
create index subject_version_left on subject_version (left_at) where left_at is not null and not keep;

create table idempotency (
    owner text not null,
    key text not null,
    digest text not null,
    job_id integer not null,
    created_at integer not null,
    primary key (owner, key)
);
create index idempotency_job on idempotency (job_id);

create table job_log (
    id integer primary key autoincrement,
    job_id integer not null,
    task_id integer not null,
    token integer not null,
    at integer not null,
    kind text not null check (kind in ('log', 'step')),
    level text not null,
    message text not null,
    data text
);
create index job_log_job on job_log (job_id, id);

create table lock (
    name text primary key,
    holder text,
    worker text,
    -- Grows at every acquisition; rows stay, so it never starts again.
    token integer not null,
    acquired_at integer,
    until integer,
    check ((holder is null) = (until is null))
);

create table archive (
    job_id integer primary key,
    owner text not null,
    flow text not null,
    outcome text not null,
    ended_at integer not null,
    archived_at integer not null,
    document text not null
);

-- Whose turn it is to sweep, for the whole fleet.
create table pulse (
    only_row integer primary key default 1 check (only_row = 1),
    at integer not null
);
insert into pulse (at) values (0);

create table schema_version (
    version integer primary key,
    applied_at integer not null
);
