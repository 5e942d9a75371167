-- What each file of a workspace is now. Ahead of the versions while these are being written.
create table workspace_file (
  tenant text not null,
  scope text not null,
  path text not null,
  version integer not null check (version > 0),
  is_removed integer not null check (is_removed in (0, 1)),
  primary key (tenant, scope, path)
) strict, without rowid;

create index workspace_there on workspace_file (tenant, scope) where is_removed = 0;

-- Every version, from `position` on and before `until_position`. Positions are twice the number of an event; what no run
-- wrote lies right behind the newest event, at one more. So what was there before an event of some run is a range. The
-- content is not in the log, so that it can be given up without breaking it.
create table workspace_version (
  version_key integer primary key,
  tenant text not null,
  scope text not null,
  path text not null,
  version integer not null check (version > 0),
  position integer not null,
  until_position integer not null default 9223372036854775807,
  event_key integer references event (event_key),
  is_removed integer not null check (is_removed in (0, 1)),
  content_type text not null,
  content text,
  sha256 text not null,
  updated_at text not null,
  hash blob not null check (length(hash) = 32),
  unique (tenant, scope, path, version)
) strict;

create index workspace_by_position on workspace_version (tenant, scope, path, position);

-- Apart, so that files that are long gone are not passed over again and again.
create index workspace_by_end on workspace_version (tenant, scope, until_position) where is_removed = 0;

create index workspace_gone on workspace_version (tenant, scope, until_position) where is_removed = 1;

create trigger workspace_no_update before update on workspace_version
when new.version_key <> old.version_key
  or new.tenant <> old.tenant
  or new.scope <> old.scope
  or new.path <> old.path
  or new.version <> old.version
  or new.position <> old.position
  or new.event_key is not old.event_key
  or new.is_removed <> old.is_removed
  or new.content_type <> old.content_type
  or new.sha256 <> old.sha256
  or new.updated_at <> old.updated_at
  or new.hash <> old.hash
  or (new.content is not null and new.content is not old.content)
  or (new.until_position <> old.until_position and old.until_position <> 9223372036854775807)
begin
  select raise(abort, 'a version of a workspace file cannot be changed');
end;

create trigger workspace_no_replace before insert on workspace_version
when exists (
  select 1
  from workspace_version
  where tenant = new.tenant and scope = new.scope and path = new.path and version = new.version
)
begin
  select raise(abort, 'a version of a workspace file cannot be replaced');
end;
