/** Owns: what operators say about the ledger, and which gateway this is. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { gatewayNameSchema } from "../ids.ts";

/** True for a URL without a password: it is shown in logs, and in lists of processes. */
function hasNoPassword(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.password === "" && !url.searchParams.has("password");
}

const ledgerUrl = z
  .string()
  .max(BOUNDS.resourceCharsMax)
  .regex(/^postgres(?:ql)?:\/\/\S+$/u, {
    error: "the address of a PostgreSQL database, such as postgres://USER@HOST:5432/DATABASE",
  })
  .refine(hasNoPassword, {
    error:
      "a URL without a password: put the password in ledger.password as ${VARIABLE}, or in PGPASSWORD of the gateway's environment",
  });

/** The schema of the settings below `ledger`. */
export const ledgerSchema = z.strictObject({
  url: ledgerUrl
    .optional()
    .describe(
      "The PostgreSQL database that the ledger is in, such as postgres://USER@HOST:5432/DATABASE. Absent: a file in the state folder.",
    ),
  password: z
    .string()
    .min(1)
    .max(BOUNDS.resourceCharsMax)
    .optional()
    .describe(
      "The password of the database's user; may be given as `${VARIABLE}`. Absent: as PGPASSWORD says.",
    ),
  keepDays: z
    .int()
    .min(1)
    .max(BOUNDS.ledgerKeepDaysMax)
    .optional()
    .describe(
      "Days after which runs that have ended are removed from the ledger, once a day. Absent: they are kept for ever.",
    ),
});
/** Where the ledger is, and for how long it keeps what has ended. */
export type LedgerConfig = z.output<typeof ledgerSchema>;

/** The schema of the settings below `gateway`. */
export const gatewaySchema = z.strictObject({
  id: gatewayNameSchema
    .optional()
    .describe(
      "What this gateway is called in a database that it shares with others. Absent: made of the names of the machine and of the state folder.",
    ),
  leaseMs: z
    .int()
    .min(1_000)
    .max(BOUNDS.gatewayLeaseMsMax)
    .default(10_000)
    .describe(
      "Milliseconds after which a gateway that is not heard of is taken for gone: others on its database go on with its coordinations. The same for all gateways of a database.",
    ),
  orphanMs: z
    .int()
    .min(0)
    .max(BOUNDS.durationMsMax)
    .default(3_600_000)
    .describe(
      "Milliseconds that a coordination of a gone gateway waits for it, where only that gateway knows its children or can tell its owner. Then it ends without them.",
    ),
  sharedWorkspace: z
    .boolean()
    .default(false)
    .describe(
      "With a ledger on a server: agents of all its gateways work in the same folders, as on a network drive, so that a claim on a file holds for every machine. Off: a claim on a file is one of this machine.",
    ),
});
/** Which gateway this is. */
export type GatewayConfig = z.output<typeof gatewaySchema>;
