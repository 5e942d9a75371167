/** Owns: where the gateway's ledger is, as its configuration says, and what the gateway is called there. */
import { hash } from "node:crypto";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import { formatMachineName } from "../agents/coordination/contracts/resource-names.ts";
import type { LedgerConfig } from "../agents/coordination/contracts/config/ledger-config.ts";
import { isPostgresUrl } from "../infra/ledger/ledger-place.ts";
import { resolveVariable, type ReadVariable } from "../infra/http/tokens.ts";

/**
 * Returns the path of the ledger of a gateway whose configuration names no other. The files beside it are there in any
 * case.
 */
export function joinLedgerPath(stateDir: string): string {
  return join(stateDir, "coordination", "ledger.sqlite");
}

/**
 * Returns the path or the URL of the gateway's ledger. The URL has the password: show it by `formatLedgerPlace` only.
 * @throws CoordinationError `CONFIG_INVALID` where the password is in a variable that is not set
 */
export function findLedgerPlace(
  { url: text, password }: LedgerConfig,
  { stateDir, readVariable }: { readonly stateDir: string; readonly readVariable: ReadVariable },
): string {
  if (text === undefined) return joinLedgerPath(stateDir);
  if (password === undefined) return text;
  const secret = resolveVariable(password, readVariable);
  if (secret === undefined)
    throw new CoordinationError(
      "CONFIG_INVALID",
      `coordination.phase1.ledger.password names ${password}, which the environment does not have; set it, or name another variable`,
    );
  const url = new URL(text);
  // Without a host, as by a socket, a URL cannot have a password of its own.
  if (url.host === "") url.searchParams.set("password", secret);
  else url.password = encodeURIComponent(secret);
  return url.href;
}

const HOST_CHARS_MAX = 40;
const DIGITS = 8;

/**
 * Returns the gateway's name: the configured id, or else one of the machine's name and a hash of the state folder,
 * which stays the same over restarts.
 */
export function nameGateway(configuredId: string | undefined, stateDir: string): string {
  if (configuredId !== undefined) return configuredId;
  const machine = hostname()
    .replaceAll(/[^A-Za-z0-9.-]/gu, "-")
    .replace(/^[^A-Za-z0-9]+/u, "")
    .slice(0, HOST_CHARS_MAX);
  const folder = hash("sha256", resolve(stateDir)).slice(0, DIGITS);
  return machine === "" ? `gateway-${folder}` : `${machine}-${folder}`;
}

/**
 * Returns the gateway's name where its ledger is on a server that gateways share; `undefined` for a ledger in a file,
 * which no other gateway writes to.
 */
export function nameAmongGateways({
  place,
  gateway,
}: {
  readonly place: string;
  readonly gateway: string;
}): string | undefined {
  return isPostgresUrl(place) ? gateway : undefined;
}

/**
 * Returns the name of this machine, by which claims on files are told apart in a shared ledger; `undefined` where a
 * path means the same file for all who use the ledger.
 */
export function nameMachineOfFiles(
  place: string,
  { sharedWorkspace }: { readonly sharedWorkspace: boolean },
): string | undefined {
  return isPostgresUrl(place) && !sharedWorkspace ? formatMachineName(hostname()) : undefined;
}
