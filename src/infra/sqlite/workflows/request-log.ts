/** Owns: requests that came with a key of their own: who may answer one, and what was answered. */
import type {
  KeyedRequestStart,
  KeyedRequest,
  RequestKey,
  RequestLog,
} from "../../../agents/coordination/ports/workflow-store.ts";
import type { KeyValues, WorkflowWrites } from "./workflow-statements.ts";

/**
 * Creates the log, in a ledger file, of HTTP requests that came with an idempotency key, and of their answers. Each
 * call is a write transaction, which locks the file first: of two processes at once one is the first.
 */
export function createRequestLog(write: <T>(work: (writes: WorkflowWrites) => T) => Promise<T>): RequestLog {
  return {
    begin: (request) => write((writes) => beginRequest(writes, request)),
    finish: async (key, { status, body }) => {
      await write(({ answer }) => answer.run({ ...createKeyValues(key), status, body }));
    },
    release: async (key) => {
      const { leaseUntilMs = null } = key;
      await write(({ release }) => release.run({ ...createKeyValues(key), leaseUntilMs }));
    },
    lapse: async (key) => {
      const { leaseUntilMs } = key;
      await write(({ lapse }) => lapse.run({ ...createKeyValues(key), leaseUntilMs }));
    },
    deleteBefore: (time, limit) => write(({ deleteRequests }) => deleteRequests.run(time, limit).changes),
  };
}

/** Takes the key of a request for answering it, or says what became of the earlier request with that key. */
function beginRequest(writes: WorkflowWrites, request: KeyedRequest): KeyedRequestStart {
  const { digest, subject, now, leaseUntilMs } = request;
  const row = writes.request.get(createKeyValues(request));
  if (!row) {
    writes.putRequest.run({ ...createKeyValues(request), digest, subject, now, leaseUntilMs });
    return { kind: "new", subject };
  }
  if (row.digest !== digest) return { kind: "mismatch" };
  const { status, body } = row;
  if (status !== null && body !== null) return { kind: "answered", answer: { status, body } };
  if (row.lease_until_ms > now) return { kind: "in_flight" };
  writes.lease.run(leaseUntilMs, row.request_key);
  return { kind: "new", subject: row.run_id };
}

function createKeyValues({ tenant, endpoint, key }: RequestKey): KeyValues {
  return { tenant, endpoint, key };
}
