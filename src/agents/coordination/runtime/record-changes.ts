/** Owns: what is recorded when a call has ended, and what its session knows then. */
import type { Command } from "../contracts/commands.ts";
import type { CoordinationId } from "../contracts/ids.ts";
import { isFile } from "../contracts/resource-names.ts";
import type { Arbitration } from "./arbiter.ts";
import type { CallUnderWay, ChangeUnderWay } from "./writes-under-way.ts";

export interface Ending {
  /** The tool failed, or was not run. */
  readonly hasFailed: boolean;
}

/** What one call left behind and the ledger has not heard of yet. */
export interface Unrecorded {
  readonly runId: CoordinationId;
  readonly commands: readonly Command[];
}

/** Calls; beyond them the oldest is given up. */
const UNRECORDED_MAX = 1_000;

/** Whatever the host says, what is in the files decides. */
export async function recordChanges(it: Arbitration, call: CallUnderWay, ending: Ending): Promise<void> {
  const { participant, looks, changes, mayTouchAnything } = call;
  const { session, runId } = participant;
  if (mayTouchAnything) it.known.touchAnything(session, it.clock.now());
  // What was looked at is as old as the look: a change since then is one that the session does not know.
  if (!ending.hasFailed)
    for (const { resource, version } of looks) it.known.see(session, resource, { version, atMs: call.atMs });
  const commands: Command[] = [];
  for (const change of changes) commands.push(...(await endOf(it, call, { change, ending })));
  if (commands.length === 0) return;
  it.unrecorded.push({ runId, commands });
  await recordRest(it);
}

/** What follows from one change, made or not. */
async function endOf(
  it: Arbitration,
  { participant, tool }: CallUnderWay,
  { change, ending }: { readonly change: ChangeUnderWay; readonly ending: Ending },
): Promise<Command[]> {
  const { resource, token, before, isNew } = change;
  const { stepId } = participant;
  const version = await versionOf(it, resource);
  if (version !== undefined && version !== before) {
    see(it, participant.session, { change, version });
    return [{ type: "recordChange", stepId, resource, version, tool: tool || "unnamed", token }];
  }
  if (version !== undefined && !ending.hasFailed) see(it, participant.session, { change, version });
  // A claim that nothing was done under keeps nobody out.
  return ending.hasFailed && isNew ? [{ type: "releaseClaims", because: "unused", tokens: [token] }] : [];
}

async function versionOf({ files }: Arbitration, resource: string): Promise<string | undefined> {
  const look = isFile(resource) ? await files.look(resource) : undefined;
  return look && "version" in look && look.kind !== "folder" ? look.version : undefined;
}

/** Who changed a part of what it had not seen knows that part alone. */
function see(
  { known, clock }: Arbitration,
  session: CallUnderWay["participant"]["session"],
  {
    change: { resource, before, replaces, knownAs },
    version,
  }: { readonly change: ChangeUnderWay; readonly version: string },
): void {
  if (!replaces && known.seen(session, resource)?.version !== before) return;
  known.see(session, resource, { version: knownAs ?? version, atMs: clock.now() });
}

/**
 * Also what could not be recorded before, such as when the ledger was busy: nobody is ruled on beside a change that is not on disk.
 *
 * @throws CoordinationError when it still cannot be.
 */
export async function recordRest(it: Pick<Arbitration, "unrecorded" | "runs">): Promise<void> {
  const { unrecorded, runs } = it;
  unrecorded.splice(0, Math.max(0, unrecorded.length - UNRECORDED_MAX));
  for (let first = unrecorded[0]; first; first = unrecorded[0]) {
    await runs.submit(first.runId, first.commands);
    const index = unrecorded.indexOf(first);
    if (index !== -1) unrecorded.splice(index, 1);
  }
}
