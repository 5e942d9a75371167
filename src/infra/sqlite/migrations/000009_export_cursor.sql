-- How far an export of the events came, and which process has it: none where the holder is empty. `beats` grows while it is there.
create table export_cursor (
  name text primary key,
  position integer not null check (position >= 0),
  holder text not null,
  beats integer not null
) strict, without rowid;
