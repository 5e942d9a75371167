--! breaking
-- An older release would say of a ledger with these indexes that its schema was changed.

-- The events of a time, of a step, and those that an event caused.
create index event_by_time on event (timestamp_ms);

create index event_by_step on event (run_key, node_id) where node_id is not null;

create index event_by_cause on event (run_key, causation_id) where causation_id is not null;

-- By which coordinations, or single steps of them (`step_id`, else ''), are found: all of them by their 'start', and by
-- 'trace', 'session', 'agent', 'child' (session) and 'cause' (an earlier coordination). In the order in which they
-- started, so that a time is a range. A function of the log: `verify` compares the two.
create table run_label (
  kind text not null,
  value text not null,
  started_at_ms integer not null,
  run_key integer not null,
  step_id text not null,
  primary key (kind, value, started_at_ms, run_key, step_id)
) strict, without rowid;

-- A step has no label that its coordination has. Telling the owner of a plan is a step, but the owner is no child. A
-- payload that is damaged has no labels.
insert into run_label (kind, value, started_at_ms, run_key, step_id)
with
  label (type, kind, path, owner_path) as (
    values
      ('coordination.created', 'start', null, null),
      ('coordination.created', 'trace', '$.trace.traceId', null),
      ('coordination.created', 'session', '$.ownerSession', null),
      ('coordination.created', 'agent', '$.ownerAgent', null),
      ('coordination.created', 'cause', '$.trace.causalRef', null),
      ('coordination.created', 'cause', '$.parent.coordinationId', null),
      ('coordination.created', 'cause', '$.forkedFrom.coordinationId', null),
      ('step.admitted', 'session', '$.sourceSession', '$.ownerSession'),
      ('step.admitted', 'agent', '$.agentId', '$.ownerAgent'),
      ('step.dispatched', 'child', '$.targetSession', null),
      ('step.acknowledged', 'child', '$.childSessionKey', null)
  ),
  labelled as (
    select
      label.kind,
      iif(json_valid(event.payload), iif(label.kind = 'start', '', event.payload ->> label.path), null) as value,
      opening.timestamp_ms as started_at_ms,
      event.run_key,
      coalesce(event.node_id, '') as step_id,
      iif(json_valid(opening.payload), opening.payload ->> label.owner_path, null) as owner_value
    from event
    cross join label on label.type = event.type
    join event as opening on opening.run_key = event.run_key and opening.sequence = 0
    where event.node_id is not '@delivery'
  )
select kind, value, started_at_ms, run_key, step_id
from labelled
where value is not null and value is not owner_value
on conflict do nothing;

create trigger run_label_no_update before update on run_label
begin
  select raise(abort, 'a label of the ledger cannot be changed');
end;

create trigger run_label_no_delete before delete on run_label
begin
  select raise(abort, 'a label of the ledger cannot be removed');
end;
