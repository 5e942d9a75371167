/** Owns: a ledger with conflicts and claims, ruled on by the real arbiter over real files. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import {
  nameChildSession,
  contentOf,
  OWNER,
  spawnRequest,
  testCoordinator,
} from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  openTestLedger,
  TEST_EPOCH_MS,
  type ManualClock,
} from "../support/temp-ledger.ts";

export const WRITERS = "co-1f0c7a52-9e4b-4d6f-8a21-5b3c9d7e0f14" as CoordinationId;
export const STRANGERS = "co-9a3b0000-0000-4000-8000-000000000001" as CoordinationId;
export const NASTY = "\u001b[31mred\u0007\u202eevil\nline";
/** Resources that people must rule on. */
export const PRODUCTION = "queue:production";

const STRANGER = "agent:other:main" as SessionKey;

interface Stage {
  readonly coordinator: Coordinator;
  readonly clock: ManualClock;
  readonly folder: string;
}

/** Steps `draft`, `review` and a nasty one of `WRITERS`; `thief` of `STRANGERS`, whose id is that of `draft`. */
export async function recordConflicts(path: string, folder: string): Promise<void> {
  const clock = createManualClock();
  const store = await openTestLedger(path, { clock });
  const ids = [WRITERS, STRANGERS];
  const coordinator = testCoordinator({
    store,
    clock,
    workspace: folder,
    newCoordinationId: () => ids.shift() ?? ("co-unexpected" as CoordinationId),
    conflicts: { highRisk: [PRODUCTION] },
  });
  const stage = { coordinator, clock, folder };
  await spawn(stage, { name: "draft", source: OWNER });
  await spawn(stage, { name: "review", source: OWNER });
  await spawn(stage, { name: NASTY, source: OWNER });
  await spawn(stage, { name: "thief", source: STRANGER });
  await write(stage, { atMs: 10_000, session: nameChildSession("draft"), path: "notes.md" });
  await write(stage, { atMs: 12_000, session: nameChildSession("review"), path: "notes.md" });
  await write(stage, { atMs: 14_000, session: nameChildSession("draft"), resource: PRODUCTION });
  await write(stage, { atMs: 16_000, session: OWNER, resource: PRODUCTION });
  await write(stage, { atMs: 18_000, session: nameChildSession("thief"), path: "notes.md" });
  await write(stage, { atMs: 18_000, session: nameChildSession("thief"), resource: PRODUCTION });
  await write(stage, { atMs: 20_000, session: nameChildSession("review"), resource: `queue:${NASTY}` });
  await write(stage, { atMs: 22_000, session: nameChildSession(NASTY), resource: `queue:${NASTY}` });
  await coordinator.stop();
  await store.close();
}

async function spawn(
  { coordinator, clock }: Stage,
  { name, source }: { readonly name: string; readonly source: SessionKey },
): Promise<void> {
  clock.set(TEST_EPOCH_MS);
  const base = spawnRequest({ call: `call-${name}`, trace: `trace-of-${source}`, source });
  const admission = await coordinator.admitSpawn({
    ...base,
    spawn: { ...base.spawn, name },
    objective: contentOf("Write the notes"),
  });
  if (admission.kind !== "admitted") throw new Error(`${name} was refused: ${admission.reason}`);
  const { coordinationId, stepId } = admission.envelope;
  await coordinator.confirmSpawn(
    { coordinationId, stepId, sourceSession: source, toolCallId: `call-${name}` },
    { childSessionKey: nameChildSession(name), childRunId: "a-run" },
  );
}

type Write = { readonly atMs: number; readonly session: SessionKey } & (
  { readonly path: string } | { readonly resource: string }
);

async function write({ coordinator, clock, folder }: Stage, wanted: Write): Promise<WriteAnswer> {
  const { atMs, session } = wanted;
  clock.set(TEST_EPOCH_MS + atMs);
  const callKey = `${session} at ${atMs}`;
  const at = "path" in wanted ? { path: wanted.path, folder } : { resource: wanted.resource };
  const answer = await coordinator.arbiter.request({
    session,
    tool: "write",
    callKey,
    reads: [],
    targets: [{ at, replaces: true }],
  });
  if (answer.kind === "granted" && "path" in wanted) writeFileSync(join(folder, wanted.path), callKey);
  await coordinator.arbiter.callEnded(callKey);
  return answer;
}
