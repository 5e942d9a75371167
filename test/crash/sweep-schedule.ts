/**
 * Owns: seeded schedules of what a gateway does, run with a fault at one port call and a new process after each death.
 * Promises to the host, and the host's knowledge, are remembered for the checks.
 */
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { ChildEnding } from "../../src/agents/coordination/contracts/observation.ts";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import type { SpawnClaim } from "../../src/agents/coordination/runtime/spawns/spawn-claim.ts";
import { OWNER, spawnOf, createWorld, type World } from "../support/fake-clock-host.ts";
import { createRandom } from "../support/random.ts";
import { startProcess, type Calls, type Fault, type Process } from "./sweep-process.ts";

export interface SpawnStory {
  readonly call: string;
  /** Which of the tasks it is: two spawns may look the same. */
  readonly task: string;
  readonly trace: string;
  /** Spawned by the child of an earlier story, where that has one. */
  readonly parent?: number;
  readonly host: "makes a child" | "refuses" | "forgets";
  readonly ending?: ChildEnding;
  /** Whether a hook tells of the end; else only the host's records do. */
  readonly endIsHeard: boolean;
  /** Runs side by side with the story before it. */
  readonly parallel: boolean;
}

/** The outcome of one story, as far as anybody outside the ledger was told. */
export interface StoryOutcome {
  readonly story: SpawnStory;
  /** The source of the spawn was there, so that it was asked for. */
  isAsked?: true;
  admitted?: CoordinationEnvelope;
  child?: SessionKey;
  confirmed?: CoordinationEnvelope;
  /** The host refused, and the ledger took note. */
  refusalNoted?: boolean;
}

/** The world after all stories of a seed, and the outcome of each. */
export interface PlayedSweep {
  readonly world: World;
  readonly tellings: readonly StoryOutcome[];
  readonly calls: number;
  readonly deaths: number;
}

export function storiesOf(seed: number): SpawnStory[] {
  const next = createRandom(seed);
  const oneOf = <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)]!;
  const endings: readonly (ChildEnding | undefined)[] = [
    ...([{ outcome: "completed" }, { outcome: "completed" }, { outcome: "failed", message: "x" }] as const),
    ...([{ outcome: "cancelled" }, { outcome: "timed_out" }, undefined] as const),
  ];
  return Array.from({ length: 1 + Math.floor(next() * 4) }, (_, index) => {
    const parent = index > 0 && next() < 0.4 ? Math.floor(next() * index) : undefined;
    const ending = oneOf(endings);
    return {
      call: `call-${index}`,
      task: next() < 0.3 ? "same" : `task-${index}`,
      trace: next() < 0.25 ? "trace-2" : "trace-1",
      ...(parent !== undefined && { parent }),
      host: oneOf(["makes a child", "makes a child", "makes a child", "refuses", "forgets"] as const),
      ...(ending && { ending }),
      endIsHeard: next() < 0.7,
      parallel: parent === undefined && next() < 0.5,
    };
  });
}

const SETTINGS = { stepTimeoutMs: 120_000, sweepMs: 60_000, acknowledgeMs: 30_000, settleMs: 3_000 };
/** By then every deadline has passed and every sweep that it takes has run. */
const LONG_MS = 20 * 60_000;

export async function playSweep(seed: number, fault?: Fault): Promise<PlayedSweep> {
  const next = createRandom(seed + 1);
  const w = createWorld(SETTINGS);
  const calls: Calls = { count: 0 };
  let deaths = 0;
  let process: Process;
  const bootProcess = async (): Promise<void> => {
    process = startProcess(w, calls, fault);
    const started = await Promise.race([process.coordinator.start(), process.died]);
    if (started === "died") await rebootLater();
  };
  const rebootLater = async (): Promise<void> => {
    deaths += 1;
    await w.clock.advance(Math.floor(next() * 40_000));
    await bootProcess();
  };
  /** `undefined` when the call failed or nobody lived to hear the answer. */
  const ask = async <T>(work: (process: Process) => Promise<T>): Promise<T | undefined> => {
    const asker = process;
    return Promise.race([work(asker).catch(() => undefined), asker.died.then(() => undefined)]);
  };
  const tellings: StoryOutcome[] = storiesOf(seed).map((story) => ({ story }));
  await bootProcess();
  for (const group of groupSideBySide(tellings)) {
    await Promise.all(group.map((each) => tell(w, { tellings: tellings, each, ask })));
    if (process!.isDead()) await rebootLater();
    await w.clock.advance(Math.floor(next() * 5_000));
    if (process!.isDead()) await rebootLater();
  }
  for (const [index] of tellings.entries()) {
    await end(w, tellings[index]!, ask);
    if (process!.isDead()) await rebootLater();
  }
  await w.clock.advance(LONG_MS);
  if (process!.isDead()) {
    await rebootLater();
    await w.clock.advance(LONG_MS);
  }
  await process!.coordinator.stop();
  return { world: w, tellings: tellings, calls: calls.count, deaths };
}

function groupSideBySide(tellings: readonly StoryOutcome[]): StoryOutcome[][] {
  const groups: StoryOutcome[][] = [];
  for (const each of tellings) {
    const last = groups.at(-1);
    if (each.story.parallel && last) last.push(each);
    else groups.push([each]);
  }
  return groups;
}

type Ask = <T>(work: (process: Process) => Promise<T>) => Promise<T | undefined>;

/** The host's side of one spawn: asked before, made or refused, told after. */
async function tell(
  w: World,
  {
    tellings,
    each,
    ask,
  }: { readonly tellings: readonly StoryOutcome[]; readonly each: StoryOutcome; readonly ask: Ask },
): Promise<void> {
  const { task, trace, parent, call } = each.story;
  const source = parent === undefined ? OWNER : tellings[parent]?.child;
  if (!source) return;
  each.isAsked = true;
  const request = spawnOf({ task, trace, call, source });
  const admission = await ask(({ coordinator }) => coordinator.admitSpawn(request));
  // Strict: what could not be recorded is not spawned, and a dead gateway spawns nothing.
  if (admission?.kind !== "admitted") return;
  each.admitted = admission.envelope;
  if (each.story.host === "refuses") await refuse(each, ask);
  else if (each.story.host === "makes a child") await make(w, { each, request, ask });
}

async function refuse(each: StoryOutcome, ask: Ask): Promise<void> {
  const claim = claimOf(each);
  const noted = await ask(({ coordinator }) =>
    coordinator.refuseSpawn(claim, "not allowed").then(() => true),
  );
  each.refusalNoted = noted === true;
}

async function make(
  w: World,
  { each, request, ask }: { readonly each: StoryOutcome; readonly request: SpawnRequest; readonly ask: Ask },
): Promise<void> {
  const { childSessionKey, childRunId } = w.host.spawn(request);
  const claim = claimOf(each);
  each.child = childSessionKey;
  const confirmed = await ask(({ coordinator }) =>
    coordinator.confirmSpawn(claim, { childSessionKey, childRunId }),
  );
  if (confirmed) each.confirmed = confirmed;
}

function claimOf({ admitted, story }: StoryOutcome): SpawnClaim {
  if (!admitted) throw new Error(`${story.call} was not admitted`);
  const { coordinationId, stepId, sourceSession } = admitted;
  return { coordinationId, stepId, sourceSession, toolCallId: story.call };
}

async function end(w: World, { child, story }: StoryOutcome, ask: Ask): Promise<void> {
  const { ending, endIsHeard } = story;
  if (!child || !ending) return;
  w.host.end(child, ending);
  if (endIsHeard) await ask(({ coordinator }) => coordinator.endChild(child, ending));
}
