--! breaking
-- An older release would end steps without releasing their claims.

-- The claims that were not released. An index and not the log: a renewal changes a row and a release removes it.
create table claim (
  token integer primary key,
  resource text not null,
  run_key integer not null references run (run_key),
  step_id text not null,
  priority text not null,
  acquired_at_ms integer not null,
  expires_at_ms integer not null
) strict;

-- With all that is asked of it, so that who holds something below a folder is found without the rows: a third of the time.
create index claim_by_resource on claim (resource, expires_at_ms, run_key, step_id);

create index claim_by_run on claim (run_key);

-- The token of the newest claim ever acquired (S5). It outlives the claim.
create table claim_token (
  only_row integer primary key check (only_row = 1),
  newest integer not null
) strict;

insert into claim_token (only_row, newest)
values (1, 0);

create trigger claim_in_order before insert on claim
when new.token is not (select newest + 1 from claim_token)
begin
  select raise(abort, 'the token of a claim is the one after the newest');
end;

create trigger claim_counted after insert on claim
begin
  update claim_token set newest = new.token;
end;

create trigger claim_stays before update on claim
when new.token <> old.token
  or new.resource <> old.resource
  or new.run_key <> old.run_key
  or new.step_id <> old.step_id
  or new.priority <> old.priority
  or new.acquired_at_ms <> old.acquired_at_ms
begin
  select raise(abort, 'of a claim only the expiry changes');
end;

create trigger claim_token_counts before update on claim_token
when new.only_row <> old.only_row or new.newest <> old.newest + 1
begin
  select raise(abort, 'tokens of claims are counted without a gap');
end;

create trigger claim_token_no_delete before delete on claim_token
begin
  select raise(abort, 'the newest token cannot be removed');
end;

create trigger claim_token_no_replace before insert on claim_token
begin
  select raise(abort, 'the newest token cannot be replaced');
end;
