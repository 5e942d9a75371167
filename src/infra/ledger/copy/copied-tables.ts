/**
 * Owns: which tables a copy of a ledger takes over, with their columns, and which it leaves out and why. A table that a migration
 * adds belongs into one of the two lists; a test holds them against both schemas.
 */

export type ColumnType = "integer" | "text" | "bytes";

export interface CopiedTable {
  readonly name: string;
  /** The columns by which rows are read in order. Both schemas have an index on them. */
  readonly key: readonly string[];
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** True where the database itself counts the key up. */
  readonly isNumbered?: boolean;
}

/** Never changes: what was copied once stays as it is. */
export const EVENT_TABLE: CopiedTable = {
  name: "event",
  key: ["event_key"],
  columns: {
    event_key: "integer",
    run_key: "integer",
    sequence: "integer",
    type: "text",
    timestamp_ms: "integer",
    node_id: "text",
    causation_id: "text",
    payload: "text",
    hash: "bytes",
  },
};

export const RUN_TABLE: CopiedTable = {
  name: "run",
  key: ["run_key"],
  columns: {
    run_key: "integer",
    run_id: "text",
    length: "integer",
    head_hash: "bytes",
    kind: "text",
    ended: "integer",
    summary: "text",
    origin: "text",
  },
};

/** The traces of runs that were pruned. */
export const PRUNED_TABLE: CopiedTable = {
  name: "pruned_run",
  key: ["run_key"],
  columns: {
    run_key: "integer",
    run_id: "text",
    kind: "text",
    length: "integer",
    head_hash: "bytes",
    first_event: "integer",
    newest_event: "integer",
    claims: "integer",
    pruned_at_ms: "integer",
  },
};

/** All but the events, in an order in which no row refers to one of a later table. */
export const BESIDE_TABLES: readonly CopiedTable[] = [
  RUN_TABLE,
  PRUNED_TABLE,
  {
    name: "reference",
    key: ["reference_key"],
    columns: { reference_key: "integer", name: "text", run_key: "integer", step_id: "text" },
    isNumbered: true,
  },
  {
    name: "run_label",
    key: ["kind", "value", "started_at_ms", "run_key", "step_id"],
    columns: { kind: "text", value: "text", started_at_ms: "integer", run_key: "integer", step_id: "text" },
  },
  {
    name: "content",
    key: ["sha256"],
    columns: { sha256: "text", stored_at_ms: "integer", text: "text", kept: "integer" },
  },
  {
    name: "content_use",
    key: ["run_key", "sha256"],
    columns: { run_key: "integer", sha256: "text" },
  },
  {
    name: "claim",
    key: ["token"],
    columns: {
      token: "integer",
      resource: "text",
      run_key: "integer",
      step_id: "text",
      priority: "text",
      acquired_at_ms: "integer",
      expires_at_ms: "integer",
    },
  },
  {
    name: "workflow_definition",
    key: ["definition_key"],
    columns: { definition_key: "integer", sha256: "text", text: "text" },
    isNumbered: true,
  },
  {
    name: "workflow_registration",
    key: ["tenant", "workflow_id"],
    columns: { tenant: "text", workflow_id: "text", sha256: "text" },
  },
  {
    name: "memory_entry",
    key: ["event_key"],
    columns: {
      event_key: "integer",
      tenant: "text",
      scope: "text",
      memory_id: "text",
      content: "text",
      tags: "text",
      created_at: "text",
      expires_at: "text",
      expires_at_ms: "integer",
      replaced_by: "integer",
      hash: "bytes",
    },
  },
  {
    name: "memory_tag",
    key: ["tenant", "scope", "tag", "event_key"],
    columns: { tenant: "text", scope: "text", tag: "text", event_key: "integer" },
  },
  {
    name: "keyed_request",
    key: ["request_key"],
    columns: {
      request_key: "integer",
      tenant: "text",
      endpoint: "text",
      key: "text",
      digest: "text",
      run_id: "text",
      began_at_ms: "integer",
      lease_until_ms: "integer",
      status: "integer",
      body: "text",
    },
    isNumbered: true,
  },
  {
    name: "workspace_file",
    key: ["tenant", "scope", "path"],
    columns: { tenant: "text", scope: "text", path: "text", version: "integer", is_removed: "integer" },
  },
  {
    name: "workspace_version",
    key: ["version_key"],
    columns: {
      version_key: "integer",
      tenant: "text",
      scope: "text",
      path: "text",
      version: "integer",
      position: "integer",
      until_position: "integer",
      event_key: "integer",
      is_removed: "integer",
      content_type: "text",
      content: "text",
      sha256: "text",
      updated_at: "text",
      hash: "bytes",
    },
    isNumbered: true,
  },
];

export const COPIED_TABLES: readonly CopiedTable[] = [EVENT_TABLE, ...BESIDE_TABLES];

/** Tables that are not copied, and why. */
export const LEFT_OUT_TABLES: Readonly<Record<string, string>> = {
  migration: "each schema has its own",
  run_owner: "it says which processes are alive, and none works on a ledger that is copied",
  export_cursor: "an export of the copy is another one, and begins by itself",
  sqlite_sequence: "the count of the events is set by itself",
  claim_token: "the newest token is set by itself",
  ledger_count: "the counts are set by themselves",
  memory_block: "it follows from the entries of memory; only a file has it",
};

/** Columns that are not copied, and why. */
export const LEFT_OUT_COLUMNS: Readonly<Record<string, string>> = {
  "content.content_key": "texts are found by their hash; only a file numbers them",
  "run.owner_id": "nobody drives a run of a copy until a process takes it over",
  "run.owner_token": "it counts who drove the run in its own ledger",
  "run.arrived": "it is for the process that drives the run",
};

/** Where the last version of a workspace file ends, as a copy reads it. */
export const OPEN_END = 9_007_199_254_740_991;
