/** Owns: the SQL of workflow runs and of what lies beside their logs, prepared once per connection and when first needed. */
import type { Database, Statement } from "better-sqlite3";
import { prepareEvents, type EventsStatement, type RunRow } from "./run-statements.ts";

interface Scope {
  readonly tenant: string;
  readonly scope: string;
}

/** Entries written by events before `before`. */
interface EntryFilter extends Scope {
  readonly before: number;
  readonly now: number;
}

type ListFilter = EntryFilter & { readonly limit: number };

export interface EntryRow {
  readonly memory_id: string;
  readonly content: string;
  /** JSON. */
  readonly tags: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

export interface KeyValues {
  readonly tenant: string;
  readonly endpoint: string;
  readonly key: string;
}

export interface RequestRow {
  readonly request_key: number;
  readonly digest: string;
  readonly run_id: string;
  readonly lease_until_ms: number;
  readonly status: number | null;
  readonly body: string | null;
}

/** Not on schemas before `WORKFLOWS_SINCE_VERSION`. */
export interface WorkflowReads {
  readonly events: EventsStatement;
  readonly entry: Statement<[runId: string], RunRow>;
  readonly open: Statement<[after: number, limit: number], RunRow>;
  readonly all: Statement<[after: number, limit: number], RunRow>;
  readonly definition: Statement<[sha256: string], string>;
  readonly registered: Statement<[tenant: string, workflowId: string], { sha256: string; text: string }>;
  /** The number that the event has in the ledger, or of which it would be the first behind its run's log. */
  readonly place: Statement<[{ readonly runId: string; readonly sequence: number }], number>;
  readonly entries: Statement<[ListFilter], EntryRow>;
  readonly taggedEntries: Statement<[ListFilter & { readonly tag: string }], EntryRow>;
  readonly newestEntry: Statement<[EntryFilter & { readonly id: string }], EntryRow>;
  readonly drivers: Statement<[], { id: string; pid: number; beat_at_ms: number }>;
}

export interface WorkflowWrites {
  readonly putDefinition: Statement<[sha256: string, text: string]>;
  readonly register: Statement<[tenant: string, workflowId: string, sha256: string]>;
  readonly putEntry: Statement<[EntryValues]>;
  readonly putTag: Statement<[TagValues]>;
  readonly request: Statement<[KeyValues], RequestRow>;
  readonly putRequest: Statement<[RequestValues]>;
  readonly lease: Statement<[leaseUntilMs: number, requestKey: number]>;
  readonly answer: Statement<[KeyValues & { readonly status: number; readonly body: string }]>;
  readonly release: Statement<[KeyValues & { readonly leaseUntilMs: number | null }]>;
  readonly deleteRequests: Statement<[before: number, limit: number]>;
  readonly beat: Statement<[id: string, pid: number, beatAtMs: number]>;
  readonly removeDriver: Statement<[id: string]>;
}

interface EntryValues extends Scope {
  readonly runKey: number;
  readonly sequence: number;
  readonly id: string;
  readonly content: string;
  readonly tags: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly expiresAtMs: number | null;
  readonly hash: Buffer;
}

interface TagValues extends Scope {
  readonly tag: string;
  readonly runKey: number;
  readonly sequence: number;
}

interface RequestValues extends KeyValues {
  readonly digest: string;
  readonly runId: string;
  readonly now: number;
  readonly leaseUntilMs: number;
}

const OF_WORKFLOW = "kind = 'workflow'";
const RUN_COLUMNS = "run_key, run_id, length, summary";

export function prepareWorkflowReads(database: Database): WorkflowReads {
  return {
    events: prepareEvents(database, OF_WORKFLOW),
    entry: database.prepare<[string], RunRow>(
      `select ${RUN_COLUMNS} from run where run_id = ? and ${OF_WORKFLOW}`,
    ),
    open: database.prepare<[number, number], RunRow>(
      `select ${RUN_COLUMNS}
       from run
       where ${OF_WORKFLOW} and ended = 0 and run_key > ?
       order by run_key
       limit ?`,
    ),
    all: database.prepare<[number, number], RunRow>(
      `select ${RUN_COLUMNS}
       from run
       where ${OF_WORKFLOW} and run_key > ?
       order by run_key
       limit ?`,
    ),
    definition: database
      .prepare<[string], string>("select text from workflow_definition where sha256 = ?")
      .pluck(),
    registered: database.prepare<[string, string], { sha256: string; text: string }>(
      `select sha256, text
       from workflow_registration
       join workflow_definition using (sha256)
       where tenant = ? and workflow_id = ?`,
    ),
    place: preparePlace(database),
    ...prepareEntries(database),
    drivers: database.prepare<[], { id: string; pid: number; beat_at_ms: number }>(
      "select id, pid, beat_at_ms from driver order by id",
    ),
  };
}

function preparePlace(database: Database): WorkflowReads["place"] {
  return database
    .prepare<[{ runId: string; sequence: number }], number>(
      `select coalesce(
         (select event_key from event where event.run_key = run.run_key and sequence = @sequence),
         (
           select event_key + 1
           from event
           where event.run_key = run.run_key
           order by sequence desc
           limit 1
         )
       )
       from run
       where run_id = @runId and ${OF_WORKFLOW}`,
    )
    .pluck();
}

const ENTRY_COLUMNS = "memory_id, content, tags, created_at, expires_at";
const IS_THERE = "(expires_at_ms is null or expires_at_ms > @now)";
/** An entry whose id was written again is there only as it was written last, and not at all when that has expired. */
const IS_NEWEST = `not exists (
  select 1
  from memory_entry as newer
  where newer.tenant = memory_entry.tenant
    and newer.scope = memory_entry.scope
    and newer.memory_id = memory_entry.memory_id
    and newer.event_key > memory_entry.event_key
    and newer.event_key < @before
)`;

function prepareEntries(
  database: Database,
): Pick<WorkflowReads, "entries" | "taggedEntries" | "newestEntry"> {
  return {
    entries: database.prepare<[ListFilter], EntryRow>(
      `select ${ENTRY_COLUMNS}
       from memory_entry
       where tenant = @tenant and scope = @scope and event_key < @before
         and ${IS_THERE}
         and ${IS_NEWEST}
       order by event_key desc
       limit @limit`,
    ),
    taggedEntries: database.prepare<[ListFilter & { tag: string }], EntryRow>(
      `select ${ENTRY_COLUMNS}
       from memory_tag
       join memory_entry using (event_key)
       where memory_tag.tenant = @tenant and memory_tag.scope = @scope and tag = @tag
         and memory_tag.event_key < @before
         and ${IS_THERE}
         and ${IS_NEWEST}
       order by memory_tag.event_key desc
       limit @limit`,
    ),
    newestEntry: database.prepare<[EntryFilter & { id: string }], EntryRow>(
      `select ${ENTRY_COLUMNS}
       from (
         select *
         from memory_entry
         where tenant = @tenant and scope = @scope and memory_id = @id and event_key < @before
         order by event_key desc
         limit 1
       )
       where ${IS_THERE}`,
    ),
  };
}

export function prepareWorkflowWrites(database: Database): WorkflowWrites {
  return {
    putDefinition: database.prepare<[string, string]>(
      "insert into workflow_definition (sha256, text) values (?, ?) on conflict do nothing",
    ),
    register: database.prepare<[string, string, string]>(
      `insert into workflow_registration (tenant, workflow_id, sha256) values (?, ?, ?)
       on conflict do update set sha256 = excluded.sha256`,
    ),
    ...prepareEntryWrites(database),
    ...prepareRequestWrites(database),
    beat: database.prepare<[string, number, number]>(
      `insert into driver (id, pid, beat_at_ms) values (?, ?, ?)
       on conflict do update set pid = excluded.pid, beat_at_ms = excluded.beat_at_ms`,
    ),
    removeDriver: database.prepare<[string]>("delete from driver where id = ?"),
  };
}

const EVENT_KEY = "(select event_key from event where run_key = @runKey and sequence = @sequence)";

function prepareEntryWrites(database: Database): Pick<WorkflowWrites, "putEntry" | "putTag"> {
  return {
    putEntry: database.prepare<[EntryValues]>(
      `insert into memory_entry (
         event_key, tenant, scope, memory_id, content, tags, created_at, expires_at, expires_at_ms, hash
       )
       values (
         ${EVENT_KEY}, @tenant, @scope, @id, @content, @tags, @createdAt, @expiresAt, @expiresAtMs, @hash
       )`,
    ),
    putTag: database.prepare<[TagValues]>(
      `insert into memory_tag (tenant, scope, tag, event_key) values (@tenant, @scope, @tag, ${EVENT_KEY})
       on conflict do nothing`,
    ),
  };
}

const OF_KEY = "tenant = @tenant and endpoint = @endpoint and key = @key";

type RequestWrites = "request" | "putRequest" | "lease" | "answer" | "release" | "deleteRequests";

function prepareRequestWrites(database: Database): Pick<WorkflowWrites, RequestWrites> {
  return {
    request: database.prepare<[KeyValues], RequestRow>(
      `select request_key, digest, run_id, lease_until_ms, status, body from keyed_request where ${OF_KEY}`,
    ),
    putRequest: database.prepare<[RequestValues]>(
      `insert into keyed_request (tenant, endpoint, key, digest, run_id, began_at_ms, lease_until_ms)
       values (@tenant, @endpoint, @key, @digest, @runId, @now, @leaseUntilMs)`,
    ),
    lease: database.prepare<[number, number]>(
      "update keyed_request set lease_until_ms = ? where request_key = ?",
    ),
    answer: database.prepare<[KeyValues & { status: number; body: string }]>(
      `update keyed_request set status = @status, body = @body where ${OF_KEY} and status is null`,
    ),
    release: database.prepare<[KeyValues & { leaseUntilMs: number | null }]>(
      `delete from keyed_request
       where ${OF_KEY}
         and status is null
         and (@leaseUntilMs is null or lease_until_ms = @leaseUntilMs)`,
    ),
    deleteRequests: database.prepare<[number, number]>(
      `delete from keyed_request
       where request_key in (
         select request_key
         from keyed_request
         where began_at_ms < ?
         order by began_at_ms
         limit ?
       )`,
    ),
  };
}
