/** Owns: tool calls that change files: asked before, allowed or not, carried out, and told after. */
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  MergedFile,
  ReviewAnswer,
  WriteAnswer,
  WriteCall,
} from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { isDisturbed } from "./check-steps.ts";
import type { Move } from "./moves.ts";
import { callGateway, type Gateway, type World } from "./world.ts";

/** Two that are ruled on by strategy, one that is merged, one that people approve, one below a folder. */
export const FILES = ["a.md", "b.md", "merge.md", "risky.md", "folder/c.md"] as const;

interface Writer {
  readonly gateway: Gateway;
  readonly session: SessionKey;
}

/** The sessions that have work, and the owners themselves. */
export function listWriters({ gateways, children }: World): Writer[] {
  const ofPlans = gateways.flatMap((gateway) =>
    gateway.agents.runs
      .filter(({ isDelivery, ending }) => !isDelivery && !ending)
      .map(({ order }): Writer => ({ gateway, session: order.childSessionKey })),
  );
  const ofSpawns = children.flatMap((child): Writer[] => {
    const gateway = gateways[child.gateway];
    return gateway && !child.ending ? [{ gateway, session: child.session }] : [];
  });
  return [...ofPlans, ...ofSpawns, ...gateways.map((gateway) => ({ gateway, session: gateway.owner }))];
}

/** Moves whose session is greater are of sessions that have ended. */
const LATE_FROM = 7;

function listFormerWriters({ gateways, children }: World): Writer[] {
  const ofPlans = gateways.flatMap((gateway) =>
    gateway.agents.runs
      .filter(({ isDelivery }) => !isDelivery)
      .map(({ order }): Writer => ({ gateway, session: order.childSessionKey })),
  );
  const ofSpawns = children.flatMap((child): Writer[] => {
    const gateway = gateways[child.gateway];
    return gateway ? [{ gateway, session: child.session }] : [];
  });
  return [...ofPlans, ...ofSpawns];
}

export function writeFiles(world: World, move: Extract<Move, { kind: "write" }>): void {
  // An agent that was given up may still try.
  const writers = move.session > LATE_FROM ? listFormerWriters(world) : listWriters(world);
  const writer = writers[move.session % Math.max(1, writers.length)];
  if (!writer) return;
  const names = [...new Set(move.files.map((file) => FILES[file % FILES.length] ?? "a.md"))];
  void runTool(world, { writer, move, names });
}

interface ToolUse {
  readonly writer: Writer;
  readonly move: Extract<Move, { kind: "write" }>;
  readonly names: readonly string[];
}

async function runTool(world: World, use: ToolUse): Promise<void> {
  const { writer, move, names } = use;
  const { gateway, session } = writer;
  world.calls += 1;
  const number = world.calls;
  if (move.hasRead)
    await callGateway(gateway, ({ coordinator }) =>
      coordinator.arbiter.request({ ...callOf(world, use, `read-${number}`), targets: [], tool: "read" }),
    );
  const call = callOf(world, use, `call-${number}`);
  world.journal.readNew();
  const askedFrom = world.journal.events.length;
  world.waitingWrites += 1;
  const answer = await callGateway(gateway, ({ coordinator }) => coordinator.arbiter.request(call)).finally(
    () => (world.waitingWrites -= 1),
  );
  const allowed = answer && (await waitForReview(gateway, answer, move.review));
  if (!allowed) return;
  const isGranted = answer.kind !== "free";
  if (isGranted) for (const name of names) await noteGrant(world, { session, name, askedFrom });
  world.journal.readNew();
  const from = world.journal.events.length;
  const isCalm = !isDisturbed(world);
  const changed = changeFiles(world, { names, session, number, params: allowed.params });
  if (move.takesMs > 0)
    await new Promise<void>((resolve) => {
      world.clock.wakeAt((world.clock.now() + move.takesMs) as EpochMs, resolve);
    });
  const hasEnded = await callGateway(gateway, async ({ coordinator }) => {
    await coordinator.arbiter.callEnded(call.callKey);
    return true;
  });
  if (hasEnded === true && isGranted && isCalm) checkRecorded(world, session, { changed, askedFrom, from });
}

/** A2: while nothing is disturbed, what was written is in the log when its call has ended. */
function checkRecorded(
  world: World,
  session: SessionKey,
  {
    changed,
    askedFrom,
    from,
  }: { readonly changed: readonly string[]; readonly askedFrom: number; readonly from: number },
): void {
  const { journal, problems, files } = world;
  if (isDisturbed(world) || hasEndedFrom(world, askedFrom)) return;
  const since = journal.events.slice(from);
  for (const name of changed) {
    const resource = `file:${files.folder}/${name}`;
    const isThere = since.some(
      (event) => event.type === "resource.changed" && event.payload.resource === resource,
    );
    if (!isThere) problems.push(`A2: what ${session} wrote to ${name} is not in the log`);
  }
}

function callOf(world: World, { writer, names, move }: ToolUse, callKey: string): WriteCall {
  const { folder } = world.files;
  return {
    session: writer.session,
    tool: "write",
    callKey,
    reads: move.hasRead && callKey.startsWith("read") ? names.map((path) => ({ path, folder })) : [],
    targets: names.map((path) => ({
      at: { path, folder },
      replaces: true,
      propose: (before) => ({ kind: "text" as const, text: textOf(world, before, writer.session) }),
    })),
    rewrite: (merged) => ({ merged }),
  };
}

const LINES = ["one", "-", "two", "-", "three", "-", "four"];

/** Each session changes a line of its own, so that changes can be merged. */
function textOf({ calls }: World, before: string | undefined, session: SessionKey): string {
  const lines = before === undefined || before === "" ? LINES : before.split("\n");
  const place = (session.length + (Number(session.at(-1)) || 0)) % 4;
  return lines.map((line, index) => (index === place * 2 ? `${session} ${calls}` : line)).join("\n");
}

/** The parameters of the call where it may happen. */
async function waitForReview(
  gateway: Gateway,
  answer: WriteAnswer,
  review: ReviewAnswer,
): Promise<{ readonly params?: unknown } | undefined> {
  if (answer.kind === "free") return {};
  if (answer.kind === "granted") return { params: answer.params };
  if (answer.kind === "refused") return undefined;
  const isSettled = await callGateway(gateway, async () => {
    await answer.settle(review);
    return true;
  });
  return isSettled && review === "approved" ? { params: answer.params } : undefined;
}

/** True where a coordination has ended from that event on: its claims ended with it, and it takes no more changes. */
function hasEndedFrom({ journal }: World, from: number): boolean {
  journal.readNew();
  return journal.events.slice(from).some(({ type }) => type === "coordination.terminal");
}

async function noteGrant(
  world: World,
  {
    session,
    name,
    askedFrom,
  }: { readonly session: SessionKey; readonly name: string; readonly askedFrom: number },
): Promise<void> {
  const resource = `file:${world.files.folder}/${name}`;
  const atMs = world.clock.now();
  const claims = [...world.ledger.claims.entries.values()].filter(
    (claim) => `${resource}/`.startsWith(`${claim.resource}/`) && claim.expiresAtMs > atMs,
  );
  const listHolders = (some: typeof claims): string[] =>
    some.map(({ runId, stepId }) => `${runId}/${stepId}`);
  const holders = listHolders(claims.filter((claim) => claim.resource === resource));
  const isCalm = !isDisturbed(world) && !hasEndedFrom(world, askedFrom);
  world.promises.grants.push({ session, resource, holders, covering: listHolders(claims), isCalm, atMs });
  await Promise.resolve();
}

interface Change {
  readonly names: readonly string[];
  readonly session: SessionKey;
  readonly number: number;
  readonly params: unknown;
}

/** Returns those of the files that have another text now. */
function changeFiles(world: World, { names, session, params }: Change): string[] {
  const { merged = [] } = (params ?? {}) as { readonly merged?: readonly MergedFile[] };
  const changed: string[] = [];
  for (const [index, name] of names.entries()) {
    const instead = merged.find(({ target }) => target === index);
    const current = world.files.text(name);
    if (instead && instead.current !== current)
      world.problems.push(`A1: a merge into ${name} was made with another text than the present one`);
    const text = instead ? instead.merged : textOf(world, current, session);
    if (text !== current) changed.push(name);
    world.files.put(name, text);
  }
  return changed;
}
