-- What the server adds: keys, uploads, what was deleted, and what is to be told to the outside.

create table api_key (
    id text primary key,
    -- A key of a program, the one-time link of a person, or the session that such a link opened.
    kind text not null check (kind in ('key', 'link', 'session')),
    scope text not null check (scope in ('admin', 'owner', 'worker')),
    owner text not null,
    name text not null,
    -- Only the hash: nobody can read a key out of here.
    secret_hash text not null,
    facts text not null default '{}',
    created_at integer not null,
    expires_at integer,
    last_used_at integer,
    revoked_at integer
);
create index api_key_owner on api_key (owner, created_at, id);
create index api_key_created on api_key (created_at, id) where kind = 'key';

-- Which key a remote worker came with: whoever revokes the key shuts out its workers.
create table worker_key (
    worker integer primary key,
    key_id text not null,
    -- Of the enlisting: its repeat finds the same worker.
    request text not null
);
create unique index worker_key_key on worker_key (key_id, request);

create table upload (
    id text primary key,
    owner text not null,
    -- What the sender calls it: a label, never a path.
    name text not null,
    length integer not null check (length >= 0),
    received integer not null default 0 check (received >= 0),
    state text not null check (state in ('open', 'checking', 'done', 'refused')),
    sha256 text,
    metadata text not null default '{}',
    -- What shall become of it, and what did.
    spec text not null default '{}',
    job_id integer,
    subject_id text,
    -- Whether that was new: only a film that was `submitted` is kept, of others the bytes were here before.
    how text check (how in ('submitted', 'continued', 'made before')),
    error text,
    created_at integer not null,
    updated_at integer not null,
    expires_at integer not null,
    check (received <= length)
);
create index upload_owner on upload (owner, created_at, id);
create index upload_created on upload (created_at, id);
-- Serves the clearing of what nobody finished.
create index upload_expires on upload (expires_at) where state in ('open', 'refused');
-- Serves whoever finishes what a server that died had begun to check.
create index upload_checking on upload (id) where state = 'checking';
-- Serves the deletion of a film: what it was made of goes with it.
create index upload_subject on upload (subject_id) where subject_id is not null;
-- Serves the quota: bytes that an owner has here, or will have.
create index upload_held on upload (owner, length) where state in ('open', 'checking') or how = 'submitted';

-- Files of watched folders that were looked at: each is taken once, also if nothing came of it.
create table watched (
    path text primary key,
    -- Size and time of change: a file that differs is another one.
    identity text not null,
    -- When it was last seen there.
    at integer not null,
    job_id integer,
    subject_id text,
    error text
);
-- Serves the forgetting of files that are there no more.
create index watched_at on watched (at);

-- Subjects that somebody deleted: shown to nobody; their bytes go when the last lease has ended.
create table subject_gone (
    kind text not null,
    id text not null,
    owner text not null,
    at integer not null,
    actor text not null,
    -- From here on it hides nothing: its bytes were freed, or somebody wanted something of it anew.
    cleared_at integer,
    -- Jobs that were put away: a worker that lost its lease may still have written into their folders.
    jobs text not null default '[]',
    primary key (kind, id)
);
create index subject_gone_uncleared on subject_gone (at) where cleared_at is null;
create index subject_gone_cleared on subject_gone (cleared_at) where cleared_at is not null;

-- What servers that share this database sign with.
create table secret (
    name text primary key,
    value text not null
);

-- Jobs that somebody deleted. One that still runs is put away as soon as it has ended; then nobody sees it any more.
create table job_gone (
    job_id integer primary key,
    owner text not null,
    at integer not null,
    actor text not null,
    cleared_at integer
);
create index job_gone_uncleared on job_gone (at) where cleared_at is null;
create index job_gone_cleared on job_gone (cleared_at) where cleared_at is not null;

create table webhook (
    id integer primary key autoincrement,
    owner text not null,
    url text not null,
    format text not null check (format in ('plain', 'slack', 'discord')),
    -- Kinds of events; an empty list: all that are told.
    kinds text not null,
    -- Only of this job; null: of all jobs of the owner.
    job_id integer,
    created_at integer not null,
    disabled_at integer
);
create index webhook_owner on webhook (owner, id);
create index webhook_job on webhook (job_id) where job_id is not null;
-- Serve whoever looks for readers of all jobs, the forgetting of those of single ones, and how many of these there are.
create index webhook_standing on webhook (owner) where job_id is null;
create index webhook_passing on webhook (created_at) where job_id is not null;
create index webhook_many on webhook (owner, job_id) where job_id is not null;

create table delivery (
    id integer primary key autoincrement,
    -- Null: an alert, whose address is in the settings.
    webhook_id integer,
    -- The webhook's.
    owner text,
    -- Whom it goes to: only so many go to one host at once.
    host text not null,
    event_seq integer not null,
    kind text not null,
    body text not null,
    state text not null check (state in ('waiting', 'done', 'dead')),
    tries integer not null default 0,
    next_at integer not null,
    -- Who sends it now must say so before this.
    until integer,
    token integer not null default 0,
    last_status integer,
    last_error text,
    created_at integer not null,
    ended_at integer
);
-- An event is told once to each receiver, also if its sender died after writing it down.
create unique index delivery_once on delivery (coalesce(webhook_id, 0), event_seq, kind);
-- Serves whoever sends: host by host, so that a dead one holds up nobody else.
create index delivery_due on delivery (host, next_at) where state = 'waiting';
-- Serves the lists.
create index delivery_webhook on delivery (webhook_id, id);
create index delivery_owner on delivery (owner, id);
create index delivery_ended on delivery (ended_at) where state <> 'waiting';
-- Serves the count of what could not be told.
create index delivery_dead on delivery (id) where state = 'dead';

-- How far the events have been turned into deliveries, and the secret from which signing keys are made.
create table postman (
    only_row integer primary key default 1 check (only_row = 1),
    seq integer not null,
    secret text not null
);
create table alert (
    kind text primary key,
    sent_at integer not null,
    -- What the cooldown has held back since.
    held integer not null default 0
);

-- What was counted of the events, up to the one that the row `seq` names: counters that outlive restarts, retention and
-- every single server. The row `identity` is this database's own, from which the ids of traces are made.
create table tally (
    name text not null,
    -- A JSON list of their values.
    labels text not null,
    value integer not null,
    primary key (name, labels)
) without rowid;
