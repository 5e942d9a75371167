/** Owns: the SQL of workflow runs and of what lies beside their logs, prepared once per connection and when first needed. */
import type { Database, Statement } from "better-sqlite3";
import {
  prepareMemoryReads,
  prepareMemoryWrites,
  type MemoryReads,
  type MemoryWrites,
} from "./memory-statements.ts";
import { preparePositionRead, type PositionStatement } from "./workspace-statements.ts";

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
export interface WorkflowReads extends MemoryReads {
  readonly definition: Statement<[sha256: string], string>;
  readonly registered: Statement<[tenant: string, workflowId: string], { sha256: string; text: string }>;
  readonly position: PositionStatement;
}

export interface WorkflowWrites extends MemoryWrites {
  readonly putDefinition: Statement<[sha256: string, text: string]>;
  readonly register: Statement<[tenant: string, workflowId: string, sha256: string]>;
  readonly request: Statement<[KeyValues], RequestRow>;
  readonly putRequest: Statement<[RequestValues]>;
  readonly lease: Statement<[leaseUntilMs: number, requestKey: number]>;
  readonly answer: Statement<[KeyValues & { readonly status: number; readonly body: string }]>;
  readonly release: Statement<[KeyValues & { readonly leaseUntilMs: number | null }]>;
  readonly lapse: Statement<[KeyValues & { readonly leaseUntilMs: number }]>;
  readonly deleteRequests: Statement<[before: number, limit: number]>;
}

interface RequestValues extends KeyValues {
  readonly digest: string;
  readonly subject: string;
  readonly now: number;
  readonly leaseUntilMs: number;
}

/** Prepares the SQLite statements that read definitions of workflows and their memory. */
export function prepareWorkflowReads(database: Database): WorkflowReads {
  return {
    definition: database
      .prepare<[string], string>("select text from workflow_definition where sha256 = ?")
      .pluck(),
    registered: database.prepare<[string, string], { sha256: string; text: string }>(
      `select sha256, text
       from workflow_registration
       join workflow_definition using (sha256)
       where tenant = ? and workflow_id = ?`,
    ),
    position: preparePositionRead(database),
    ...prepareMemoryReads(database),
  };
}

/** Prepares the SQLite statements that store definitions of workflows, memory and keyed requests. */
export function prepareWorkflowWrites(database: Database): WorkflowWrites {
  return {
    putDefinition: database.prepare<[string, string]>(
      "insert into workflow_definition (sha256, text) values (?, ?) on conflict do nothing",
    ),
    register: database.prepare<[string, string, string]>(
      `insert into workflow_registration (tenant, workflow_id, sha256) values (?, ?, ?)
       on conflict do update set sha256 = excluded.sha256`,
    ),
    ...prepareMemoryWrites(database),
    ...prepareRequestWrites(database),
  };
}

const KEY_MATCHES = "tenant = @tenant and endpoint = @endpoint and key = @key";

type RequestWrites = "request" | "putRequest" | "lease" | "answer" | "release" | "lapse" | "deleteRequests";

function prepareRequestWrites(database: Database): Pick<WorkflowWrites, RequestWrites> {
  return {
    request: database.prepare<[KeyValues], RequestRow>(
      `select request_key, digest, run_id, lease_until_ms, status, body from keyed_request where ${KEY_MATCHES}`,
    ),
    putRequest: database.prepare<[RequestValues]>(
      `insert into keyed_request (tenant, endpoint, key, digest, run_id, began_at_ms, lease_until_ms)
       values (@tenant, @endpoint, @key, @digest, @subject, @now, @leaseUntilMs)`,
    ),
    lease: database.prepare<[number, number]>(
      "update keyed_request set lease_until_ms = ? where request_key = ?",
    ),
    answer: database.prepare<[KeyValues & { status: number; body: string }]>(
      `update keyed_request set status = @status, body = @body where ${KEY_MATCHES} and status is null`,
    ),
    release: database.prepare<[KeyValues & { leaseUntilMs: number | null }]>(
      `delete from keyed_request
       where ${KEY_MATCHES}
         and status is null
         and (@leaseUntilMs is null or lease_until_ms = @leaseUntilMs)`,
    ),
    lapse: database.prepare<[KeyValues & { leaseUntilMs: number }]>(
      `update keyed_request
       set lease_until_ms = 0
       where ${KEY_MATCHES} and status is null and lease_until_ms = @leaseUntilMs`,
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
