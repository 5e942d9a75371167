--! breaking
-- An older release would give the events of forks other ids, and would not count memory by blocks.

-- Where the log of a fork comes from, as JSON. The chain of its hashes begins with it.
alter table run add column origin text check (origin is null or json_valid(origin));

drop trigger run_grows;

create trigger run_grows before update on run
when new.run_key <> old.run_key
  or new.run_id <> old.run_id
  or new.kind <> old.kind
  or new.origin is not old.origin
  or new.length <= old.length
  or old.ended > new.ended
begin
  select raise(abort, 'the ledger is append-only: a run only grows');
end;

-- The event that wrote the same id again. It stays when that entry is deleted, so that no older one comes back.
alter table memory_entry add column replaced_by integer check (replaced_by > event_key);

drop trigger memory_no_update;

update memory_entry
set replaced_by = newer.event_key
from (
  select event_key as replaced, lead(event_key) over (partition by tenant, scope, memory_id order by event_key) as event_key
  from memory_entry
) as newer
where memory_entry.event_key = newer.replaced and newer.event_key is not null;

create index memory_by_expiry on memory_entry (expires_at_ms) where expires_at_ms is not null;

-- How many entries lie in 256 and in 65,536 places of the ledger, and until when one of them may be there: so that a reader
-- passes over what has expired or was replaced in blocks. Lane: '' for a whole scope, '#' and a tag for those with it.
create table memory_block (
  tenant text not null,
  scope text not null,
  lane text not null,
  bits integer not null check (bits in (8, 16)),
  block integer not null,
  entries integer not null check (entries > 0),
  -- Not replaced.
  newest integer not null check (newest between 0 and entries),
  -- Of the others, the last time that one was replaced.
  replaced_until integer not null,
  expires_at_ms integer not null,
  primary key (tenant, scope, lane, bits, block)
) strict, without rowid;

insert into memory_block (tenant, scope, lane, bits, block, entries, newest, replaced_until, expires_at_ms)
select
  tenant,
  scope,
  lane,
  bits,
  event_key >> bits,
  count(*),
  sum(replaced_by is null),
  max(coalesce(replaced_by, 0)),
  max(coalesce(expires_at_ms, 9007199254740991))
from (
  select tenant, scope, '' as lane, event_key, replaced_by, expires_at_ms
  from memory_entry
  union all
  select memory_entry.tenant, memory_entry.scope, '#' || tag, event_key, replaced_by, expires_at_ms
  from memory_tag
  join memory_entry using (event_key)
)
join (select 8 as bits union all select 16)
group by 1, 2, 3, 4, 5;

-- It also stops `insert or replace`.
drop trigger memory_no_replace;

create trigger memory_in_order before insert on memory_entry
when new.replaced_by is not null
  or exists (select 1 from memory_entry where event_key >= new.event_key)
begin
  select raise(abort, 'memory entries are written one after the other');
end;

create trigger memory_counted after insert on memory_entry
begin
  update memory_entry
  set replaced_by = new.event_key
  where event_key = (
    select max(event_key)
    from memory_entry
    where tenant = new.tenant and scope = new.scope and memory_id = new.memory_id and event_key < new.event_key
  )
    and replaced_by is null;

  insert into memory_block (tenant, scope, lane, bits, block, entries, newest, replaced_until, expires_at_ms)
  select new.tenant, new.scope, '', bits, new.event_key >> bits, 1, 1, 0, coalesce(new.expires_at_ms, 9007199254740991)
  from (select 8 as bits union all select 16)
  where true
  on conflict do update
  set
    entries = entries + 1,
    newest = newest + 1,
    expires_at_ms = max(expires_at_ms, excluded.expires_at_ms);
end;

create trigger memory_tag_counted after insert on memory_tag
begin
  insert into memory_block (tenant, scope, lane, bits, block, entries, newest, replaced_until, expires_at_ms)
  select
    new.tenant,
    new.scope,
    '#' || new.tag,
    bits,
    new.event_key >> bits,
    1,
    1,
    0,
    coalesce((select expires_at_ms from memory_entry where event_key = new.event_key), 9007199254740991)
  from (select 8 as bits union all select 16)
  where true
  on conflict do update
  set
    entries = entries + 1,
    newest = newest + 1,
    expires_at_ms = max(expires_at_ms, excluded.expires_at_ms);
end;

create trigger memory_no_update before update on memory_entry
when old.replaced_by is not null
  or new.replaced_by is null
  or new.event_key <> old.event_key
  or new.tenant <> old.tenant
  or new.scope <> old.scope
  or new.memory_id <> old.memory_id
  or new.content <> old.content
  or new.tags <> old.tags
  or new.created_at <> old.created_at
  or new.expires_at is not old.expires_at
  or new.expires_at_ms is not old.expires_at_ms
  or new.hash <> old.hash
begin
  select raise(abort, 'a memory entry cannot be changed');
end;

create trigger memory_replaced after update on memory_entry
when new.replaced_by is not null
begin
  update memory_block
  set newest = newest - 1, replaced_until = max(replaced_until, new.replaced_by)
  where tenant = new.tenant
    and scope = new.scope
    and (lane, bits, block) in (
      select lane, bits, new.event_key >> bits
      from (
        select '' as lane
        union all
        select '#' || tag from memory_tag where event_key = new.event_key
      )
      join (select 8 as bits union all select 16)
    );
end;

create trigger memory_uncounted before delete on memory_entry
begin
  delete from memory_block
  where tenant = old.tenant
    and scope = old.scope
    and entries = 1
    and (lane, bits, block) in (
      select lane, bits, old.event_key >> bits
      from (
        select '' as lane
        union all
        select '#' || tag from memory_tag where event_key = old.event_key
      )
      join (select 8 as bits union all select 16)
    );

  update memory_block
  set entries = entries - 1, newest = newest - (old.replaced_by is null)
  where tenant = old.tenant
    and scope = old.scope
    and (lane, bits, block) in (
      select lane, bits, old.event_key >> bits
      from (
        select '' as lane
        union all
        select '#' || tag from memory_tag where event_key = old.event_key
      )
      join (select 8 as bits union all select 16)
    );
end;
