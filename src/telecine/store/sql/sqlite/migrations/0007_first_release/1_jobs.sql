-- The twin of the PostgreSQL schema: the same tables and columns. Booleans are 0 and 1, JSON is text, sequences are
-- AUTOINCREMENT (ids are never given twice, also after deletion).

create table flow (
    id integer primary key autoincrement,
    name text not null,
    version integer not null,
    -- A graph is never changed: jobs point at the one that they were submitted with.
    digest text not null,
    graph text not null,
    paused integer not null default 0,
    registered_at integer not null,
    unique (name, digest)
);

create table job (
    id integer primary key autoincrement,
    flow_id integer not null,
    flow text not null,
    owner text not null,
    subject_kind text,
    subject_id text,
    status text not null,
    -- The lowest phase among unfinished stages: what `status` shows from the first claim on.
    phase text not null,
    -- Null until the job has ended. Indexed in place of `status`, so that the claim's update stays in its page.
    outcome text,
    priority integer not null check (priority between 0 and 10),
    spec text not null,
    dedupe_key text,
    run_at integer,
    -- How many of the jobs that it comes after have not completed yet.
    waits integer not null default 0 check (waits >= 0),
    cancel_asked integer not null default 0,
    failing integer not null default 0,
    stopped integer not null default 0,
    -- Moves only with fields that outsiders may edit.
    version integer not null default 1,
    generation integer not null default 1,
    warnings integer not null default 0,
    error text,
    created_at integer not null,
    started_at integer,
    ended_at integer,
    -- An outcome exactly when it has ended, and then the status says the same. One check, since each is read anew by
    -- every statement that writes here.
    check (case when outcome is null
        then ended_at is null and status in ('pending', 'validating', 'planning', 'downloading_inputs', 'processing',
            'uploading_outputs')
        else ended_at is not null and status = outcome and outcome in ('completed', 'failed', 'cancelled') end)
);
-- Serve the lists: newest first, by owner, by flow, by subject; open jobs; ended ones by outcome and age.
create index job_owner on job (owner, id) where owner <> '';
create index job_flow on job (flow, id);
create index job_subject on job (subject_kind, subject_id, id) where subject_kind is not null;
create index job_open on job (id) where outcome is null;
create index job_ended on job (outcome, ended_at, id) where outcome is not null;
create unique index job_dedupe on job (owner, dedupe_key) where dedupe_key is not null and outcome is null;
-- Serves the sweep: jobs that must wind down.
create index job_halting on job (id) where (cancel_asked or failing) and outcome is null;

create table job_after (
    job_id integer not null,
    after_id integer not null,
    primary key (after_id, job_id)
);
create index job_after_job on job_after (job_id);

create table stage (
    job_id integer not null,
    number integer not null,
    name text not null,
    state text not null check (state in ('new', 'ready', 'done', 'error', 'cancelled', 'skipped')),
    waits integer not null check (waits >= 0),
    total integer not null,
    -- Fan-in is this counter, moved under the job's row lock.
    remaining integer not null check (remaining >= 0),
    failed integer not null default 0,
    cancelled integer not null default 0,
    ended_at integer,
    primary key (job_id, number),
    check (remaining <= total)
) without rowid;

create table task (
    id integer primary key autoincrement,
    job_id integer not null,
    stage integer not null,
    position integer not null,
    lane text not null,
    state text not null check (state in ('new', 'ready', 'running', 'done', 'error', 'cancelled', 'skipped')),
    parked integer not null default 0,
    optional integer not null default 0,
    ready_at integer,
    rank integer,
    -- The fence: grows at every claim, never falls.
    token integer not null default 0 check (token >= 0),
    tries integer not null default 0 check (tries >= 0),
    losses integer not null default 0,
    releases integer not null default 0,
    max_attempts integer not null,
    stall_ms integer,
    limit_ms integer,
    -- How long it may wait for a worker that can do it; then it is skipped, and what follows decides.
    patience_ms integer,
    worker integer,
    request text,
    claimed_at integer,
    lease_until integer,
    stops_at integer,
    progress real,
    -- The furthest that any attempt got: only going beyond it proves that the work moves.
    best real not null default 0,
    note text,
    kept integer not null default 0,
    input text,
    result text,
    error text,
    ended_at integer,
    -- A lease is there exactly while the state says so.
    check ((state = 'running') = (lease_until is not null)),
    check ((state = 'running') = (worker is not null)),
    check ((state = 'ready') <= (ready_at is not null and rank is not null)),
    check (not parked or state = 'ready')
);
create unique index task_place on task (job_id, stage, position);
-- Serves `claim`: only the rows that can be claimed are in it.
create index task_ready on task (lane, rank, id) where state = 'ready' and not parked;
-- Serves the sweep: tasks with limited patience, lane by lane, the one that ends first in front.
create index task_patience on task (lane, (ready_at + patience_ms)) where state = 'ready' and not parked and patience_ms is not null;
-- Serves `unpark`.
create index task_parked on task (ready_at) where state = 'ready' and parked;
-- Serves the beat, the sweep and the repeat of a claim. Not by expiry: renewals then stay in their page.
create index task_running on task (worker) where state = 'running';
-- Serves lists of jobs: what was begun and waits again, which is little.
create index task_begun on task (job_id) where state = 'ready' and token > 0;

create table attempt (
    task_id integer not null,
    token integer not null,
    job_id integer not null,
    generation integer not null,
    try integer not null,
    worker integer,
    outcome text not null,
    -- Of the worker's word, so that its repeat gets the same answer.
    digest text,
    state text not null,
    ready_at integer,
    error text,
    silent_ms integer,
    started_at integer,
    ended_at integer not null,
    primary key (task_id, token)
) without rowid;

create table event (
    -- The public order: one writer at a time, so ids are given in the order of commits.
    seq integer primary key autoincrement,
    at integer not null,
    kind text not null,
    job_id integer,
    task_id integer,
    stage integer,
    token integer,
    worker integer,
    data text
);
create index event_job on event (job_id, seq);
create table event_counter (
    only_row integer primary key default 1 check (only_row = 1),
    -- Everything up to here was pruned: a reader who asks for less gets `reset`.
    pruned integer not null
);
insert into event_counter (pruned) values (0);
