--! breaking
-- Beside the logs of workflow runs.

create table workflow_definition (
  definition_key bigint generated always as identity primary key,
  sha256 text collate "C" not null unique check (length(sha256) = 64),
  text text not null
);

-- What a tenant's workflow is now.
create table workflow_registration (
  tenant text collate "C" not null,
  workflow_id text collate "C" not null,
  sha256 text collate "C" not null references workflow_definition (sha256),
  primary key (tenant, workflow_id)
);

-- By the event that tells of the writing: so what was there before an event of some run is a range. `replaced_by` is the event
-- that wrote the same id again; it stays when that entry is deleted, so that no older one comes back.
create table memory_entry (
  event_key bigint primary key references event (event_key),
  tenant text collate "C" not null,
  scope text collate "C" not null,
  memory_id text collate "C" not null,
  content text not null,
  tags text not null,
  created_at text not null,
  expires_at text,
  expires_at_ms bigint,
  replaced_by bigint check (replaced_by > event_key),
  hash bytea not null check (length(hash) = 32)
);

create index memory_by_id on memory_entry (tenant, scope, memory_id, event_key);

-- Without what can never be there again by the clock: what expired is passed over only until it is deleted.
create index memory_by_scope on memory_entry (tenant, scope, event_key);

create index memory_by_expiry on memory_entry (expires_at_ms) where expires_at_ms is not null;

create table memory_tag (
  tenant text collate "C" not null,
  scope text collate "C" not null,
  tag text collate "C" not null,
  event_key bigint not null references memory_entry (event_key) on delete cascade,
  primary key (tenant, scope, tag, event_key)
);

create index memory_tag_by_entry on memory_tag (event_key);

create function replace_memory() returns trigger language plpgsql as $$
begin
  update memory_entry
  set replaced_by = new.event_key
  where event_key = (
    select max(event_key)
    from memory_entry
    where tenant = new.tenant and scope = new.scope and memory_id = new.memory_id and event_key < new.event_key
  )
    and replaced_by is null;
  return null;
end
$$;

create trigger memory_replaces after insert on memory_entry
for each row execute function replace_memory();

create trigger memory_stays before update on memory_entry
for each row when (
  old.replaced_by is not null
  or new.replaced_by is null
  or (new.event_key, new.tenant, new.scope, new.memory_id, new.content, new.tags, new.created_at, new.hash)
    <> (old.event_key, old.tenant, old.scope, old.memory_id, old.content, old.tags, old.created_at, old.hash)
  or new.expires_at is distinct from old.expires_at
  or new.expires_at_ms is distinct from old.expires_at_ms
)
execute function refuse_change('a memory entry cannot be changed');

-- Requests that came with a key of their own, until they are forgotten. Answered where `status` is there.
create table keyed_request (
  request_key bigint generated always as identity primary key,
  tenant text collate "C" not null,
  endpoint text collate "C" not null,
  key text collate "C" not null,
  digest text not null,
  run_id text not null,
  began_at_ms bigint not null,
  lease_until_ms bigint not null,
  status integer,
  body text,
  unique (tenant, endpoint, key),
  check ((status is null) = (body is null))
);

create index keyed_request_by_age on keyed_request (began_at_ms);

create table driver (
  id text collate "C" primary key,
  pid bigint not null,
  beat_at_ms bigint not null
);

-- What each file of a workspace is now.
create table workspace_file (
  tenant text collate "C" not null,
  scope text collate "C" not null,
  path text collate "C" not null,
  version bigint not null check (version > 0),
  is_removed integer not null check (is_removed in (0, 1)),
  primary key (tenant, scope, path)
);

create index workspace_there on workspace_file (tenant, scope) where is_removed = 0;

-- Every version, from `position` on and before `until_position`. Positions are twice the number of an event; what no run
-- wrote lies right behind the newest event, at one more. So what was there before an event of some run is a range.
create table workspace_version (
  version_key bigint generated always as identity primary key,
  tenant text collate "C" not null,
  scope text collate "C" not null,
  path text collate "C" not null,
  version bigint not null check (version > 0),
  position bigint not null,
  until_position bigint not null default 9007199254740991,
  event_key bigint references event (event_key),
  is_removed integer not null check (is_removed in (0, 1)),
  content_type text not null,
  content text,
  sha256 text not null,
  updated_at text not null,
  hash bytea not null check (length(hash) = 32),
  unique (tenant, scope, path, version)
);

create index workspace_by_position on workspace_version (tenant, scope, path, position, version);

create index workspace_by_end on workspace_version (tenant, scope, until_position) where is_removed = 0;

create index workspace_gone on workspace_version (tenant, scope, until_position) where is_removed = 1;

create trigger workspace_version_stays before update on workspace_version
for each row when (
  (new.version_key, new.tenant, new.scope, new.path, new.version, new.position, new.is_removed)
    <> (old.version_key, old.tenant, old.scope, old.path, old.version, old.position, old.is_removed)
  or (new.content_type, new.sha256, new.updated_at, new.hash)
    <> (old.content_type, old.sha256, old.updated_at, old.hash)
  or new.event_key is distinct from old.event_key
  or (new.content is not null and new.content is distinct from old.content)
  or (new.until_position <> old.until_position and old.until_position <> 9007199254740991)
)
execute function refuse_change('a version of a workspace file cannot be changed');
