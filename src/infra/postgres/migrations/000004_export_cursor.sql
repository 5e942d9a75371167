-- How far an export of the events came, and which process has it until when.
create table export_cursor (
  name text primary key,
  position bigint not null check (position >= 0),
  holder text not null,
  until_ms bigint not null
);
