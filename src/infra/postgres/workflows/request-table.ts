/** Owns: requests that came with a key of their own: who may answer one, and what was answered. */
import type {
  Begun,
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

/** Creates the log of requests. Each step is one statement, so that of two processes at once one is the first. */
export function createRequestLog({ written }: OpenLedger): RequestLog {
  return {
    begin: (request) => written((write) => begin(write, request)),
    finish: async (key, { status, body }) => {
      await written((write) =>
        write(
          `update keyed_request set status = @status, body = @body where ${KEY_MATCHES} and status is null`,
          {
            ...valuesOf(key),
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
          { ...valuesOf(key), leaseUntilMs },
        ),
      );
    },
    lapse: async (key) => {
      await written((write) =>
        write(
          `update keyed_request
           set lease_until_ms = 0
           where ${KEY_MATCHES} and status is null and lease_until_ms = @leaseUntilMs::bigint`,
          { ...valuesOf(key), leaseUntilMs: key.leaseUntilMs },
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
 * Takes the key where it is free, or takes it over where its lease has run out. The row may go in between, so it is tried again.
 */
async function begin(write: SendQuery, request: KeyedRequest): Promise<Begun> {
  for (;;) {
    const isTaken = await take(write, request);
    if (isTaken) return { kind: "new", subject: request.subject };
    const [row] = await write<RequestRow>(
      `select digest, run_id, lease_until_ms, status, body from keyed_request where ${KEY_MATCHES}`,
      valuesOf(request),
    );
    if (!row) continue;
    if (row.digest !== request.digest) return { kind: "mismatch" };
    const { status, body } = row;
    if (status !== null && body !== null) return { kind: "answered", answer: { status, body } };
    if (row.lease_until_ms > request.now) return { kind: "in_flight" };
    if (await takeOver(write, request, row)) return { kind: "new", subject: row.run_id };
  }
}

async function take(write: SendQuery, request: KeyedRequest): Promise<boolean> {
  const { digest, subject, now, leaseUntilMs } = request;
  const rows = await write(
    `insert into keyed_request (tenant, endpoint, key, digest, run_id, began_at_ms, lease_until_ms)
     values (@tenant, @endpoint, @key, @digest, @subject, @now, @leaseUntilMs)
     on conflict do nothing
     returning 1`,
    { ...valuesOf(request), digest, subject, now, leaseUntilMs },
  );
  return rows.length > 0;
}

/** When two find the lease run out, only one finds the row as it was read. */
async function takeOver(write: SendQuery, request: KeyedRequest, row: RequestRow): Promise<boolean> {
  const rows = await write(
    `update keyed_request
     set lease_until_ms = @leaseUntilMs
     where ${KEY_MATCHES} and status is null and lease_until_ms = @leaseBefore
     returning 1`,
    { ...valuesOf(request), leaseUntilMs: request.leaseUntilMs, leaseBefore: row.lease_until_ms },
  );
  return rows.length > 0;
}

function valuesOf({ tenant, endpoint, key }: RequestKey) {
  return { tenant, endpoint, key };
}
