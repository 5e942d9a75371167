/** Owns: requests that came with a key of their own: who may answer one, and what was answered. */
import type {
  KeyedRequestStart,
  KeyedRequest,
  RequestKey,
  RequestLog,
} from "../../../agents/coordination/ports/workflow-store.ts";
import type { SendQuery } from "../database/connect.ts";
import type { OpenLedger } from "../database/commit-queue.ts";

interface RequestRow {
  readonly digest: string;
  readonly run_id: string;
  readonly lease_until_ms: number;
  readonly status: number | null;
  readonly body: string | null;
}

const KEY_MATCHES = "tenant = @tenant and endpoint = @endpoint and key = @key";

/**
 * Creates the log, in a PostgreSQL ledger, of HTTP requests that came with an idempotency key, and of their answers.
 * Each step is one statement, so that of two processes at once one is the first.
 */
export function createRequestLog({ written }: OpenLedger): RequestLog {
  return {
    begin: (request) => written((write) => beginRequest(write, request)),
    finish: async (key, { status, body }) => {
      await written((write) =>
        write(
          `update keyed_request set status = @status, body = @body where ${KEY_MATCHES} and status is null`,
          {
            ...createKeyValues(key),
            status,
            body,
          },
        ),
      );
    },
    release: async (key) => {
      const { leaseUntilMs = null } = key;
      await written((write) =>
        write(
          `delete from keyed_request
           where ${KEY_MATCHES}
             and status is null
             and (@leaseUntilMs::bigint is null or lease_until_ms = @leaseUntilMs::bigint)`,
          { ...createKeyValues(key), leaseUntilMs },
        ),
      );
    },
    lapse: async (key) => {
      await written((write) =>
        write(
          `update keyed_request
           set lease_until_ms = 0
           where ${KEY_MATCHES} and status is null and lease_until_ms = @leaseUntilMs::bigint`,
          { ...createKeyValues(key), leaseUntilMs: key.leaseUntilMs },
        ),
      );
    },
    deleteBefore: (time, limit) =>
      written(async (write) => {
        const deleted = await write(
          `delete from keyed_request
           where request_key in (
             select request_key
             from keyed_request
             where began_at_ms < @time
             order by began_at_ms
             limit @limit
           )
           returning 1`,
          { time, limit },
        );
        return deleted.length;
      }),
  };
}

/**
 * Takes a request's key where it is free or its lease has run out, or says what became of the earlier one. The row may
 * go in between, so it is tried again.
 */
async function beginRequest(write: SendQuery, request: KeyedRequest): Promise<KeyedRequestStart> {
  for (;;) {
    const isTaken = await insertKeyIfFree(write, request);
    if (isTaken) return { kind: "new", subject: request.subject };
    const [row] = await write<RequestRow>(
      `select digest, run_id, lease_until_ms, status, body from keyed_request where ${KEY_MATCHES}`,
      createKeyValues(request),
    );
    if (!row) continue;
    if (row.digest !== request.digest) return { kind: "mismatch" };
    const { status, body } = row;
    if (status !== null && body !== null) return { kind: "answered", answer: { status, body } };
    if (row.lease_until_ms > request.now) return { kind: "in_flight" };
    if (await takeOverKey(write, request, row)) return { kind: "new", subject: row.run_id };
  }
}

/**
 * Records a request under its key with a lease, and returns whether it did: false where the key has a row already,
 * whatever became of its request.
 */
async function insertKeyIfFree(write: SendQuery, request: KeyedRequest): Promise<boolean> {
  const { digest, subject, now, leaseUntilMs } = request;
  const rows = await write(
    `insert into keyed_request (tenant, endpoint, key, digest, run_id, began_at_ms, lease_until_ms)
     values (@tenant, @endpoint, @key, @digest, @subject, @now, @leaseUntilMs)
     on conflict do nothing
     returning 1`,
    { ...createKeyValues(request), digest, subject, now, leaseUntilMs },
  );
  return rows.length > 0;
}

/**
 * Renews the lease of a key that has run out, and returns whether this process did. When two find it so, only one
 * finds the row as it was read.
 */
async function takeOverKey(write: SendQuery, request: KeyedRequest, row: RequestRow): Promise<boolean> {
  const rows = await write(
    `update keyed_request
     set lease_until_ms = @leaseUntilMs
     where ${KEY_MATCHES} and status is null and lease_until_ms = @leaseBefore
     returning 1`,
    { ...createKeyValues(request), leaseUntilMs: request.leaseUntilMs, leaseBefore: row.lease_until_ms },
  );
  return rows.length > 0;
}

function createKeyValues({ tenant, endpoint, key }: RequestKey) {
  return { tenant, endpoint, key };
}
