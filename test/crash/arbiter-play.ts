/**
 * Owns: one story of steps that contend for files, told to gateways of which one dies or meets an error at a given append. What the
 * host was answered is remembered for the checks.
 */
import type { AgentId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { ReviewAnswer, WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { read, write, type ToolCall } from "../core/arbiter-calls.ts";
import {
  host,
  spawnChild,
  valueFiles,
  type Host,
  type SceneFiles,
  type Store,
} from "../core/arbiter-scene.ts";
import { settled } from "../support/fake-clock.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { memoryLedger, type MemoryLedger } from "../support/memory-store.ts";
import { startProcess, type Appends, type Fault, type Process } from "./arbiter-process.ts";

const OTHER = "agent:main:other" as SessionKey;
const BASE = "one\n-\ntwo\n-\nthree\n";

/** A call that the host was told may happen, and what the ledger held at that moment. */
export interface Granted {
  readonly session: SessionKey;
  readonly resource: string;
  readonly holders: readonly string[];
}

export interface Played {
  readonly ledger: MemoryLedger;
  readonly store: Store;
  readonly host: Host;
  readonly files: SceneFiles;
  readonly granted: readonly Granted[];
  readonly appends: number;
  readonly deaths: number;
  readonly stepOf: ReadonlyMap<SessionKey, string>;
}

interface Telling {
  readonly host: Host;
  readonly files: SceneFiles;
  readonly store: Store;
  readonly granted: Granted[];
  /** Asks the living process; starts another one where it dies. `undefined`: nobody lived to answer, or it failed. */
  readonly ask: <T>(work: (process: Process) => Promise<T>) => Promise<T | undefined>;
}

export async function play(answer: ReviewAnswer, fault?: Fault): Promise<Played> {
  const it = host();
  const files = valueFiles();
  const ledger = memoryLedger();
  const appends: Appends = { isArmed: false, count: 0 };
  const boot = (): Process =>
    startProcess({ host: it, files, open: () => ledger.open(it.clock), appends, fault });
  const store = ledger.open(it.clock);
  const granted: Granted[] = [];
  let deaths = 0;
  let process = boot();
  await process.coordinator.start();
  const reboot = async (): Promise<void> => {
    while (process.isDead()) {
      deaths += 1;
      await it.clock.advance(1_000);
      process = boot();
      await Promise.race([process.coordinator.start(), process.died]);
    }
  };
  const ask: Telling["ask"] = async (work) => {
    const asked = process;
    const answered = await Promise.race([
      work(asked).catch(() => undefined),
      asked.died.then(() => undefined),
    ]);
    await settled();
    await reboot();
    return answered;
  };
  const stepOf = await prepare(process, it);
  appends.isArmed = true;
  await tell({ host: it, files, store, granted, ask }, { stepOf, answer });
  await it.clock.advance(30 * 60_000);
  await reboot();
  await it.clock.advance(30 * 60_000);
  await process.coordinator.stop();
  return { ledger, store, host: it, files, granted, appends: appends.count, deaths, stepOf };
}

/** Two steps of one coordination, and one of another, which is more urgent. */
async function prepare({ coordinator }: Process, it: Host): Promise<Map<SessionKey, string>> {
  const a = await spawnChild(coordinator, it.observer, { task: "a" });
  const b = await spawnChild(coordinator, it.observer, { task: "b" });
  await coordinator.submitPlan({
    ownerAgent: "main" as AgentId,
    plan: {
      coordinationId: "plan-1",
      objective: "try it",
      ownerSession: OTHER,
      conflictPolicy: {},
      failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
      steps: [{ stepId: "high", agent: "main", task: "work", priority: "high" }],
    },
  });
  for (let turn = 0; turn < 8; turn += 1) await settled();
  const high = it.plans.orders[0]?.childSessionKey ?? OTHER;
  return new Map([
    [a, "co-1/step-1"],
    [b, "co-1/step-2"],
    [OWNER, "co-1/@owner"],
    [high, "plan-1/high"],
  ]);
}

async function tell(
  telling: Telling,
  { stepOf, answer }: { readonly stepOf: ReadonlyMap<SessionKey, string>; readonly answer: ReviewAnswer },
): Promise<void> {
  const { files, ask, host: it } = telling;
  const [a = OWNER, b = OWNER, , high = OTHER] = stepOf.keys();
  const does = (session: SessionKey, texts: Readonly<Record<string, string>>) =>
    perform(telling, write(files, session, texts), Object.keys(texts));
  const looks = (session: SessionKey, name: string) =>
    ask(({ coordinator }) => coordinator.arbiter.request(read(files, session, name)));
  files.put("merge.md", BASE);
  for (const session of [a, b]) await looks(session, "merge.md");
  await does(a, { "x.md": "a", "y.md": "a" });
  await does(b, { "x.md": "b" });
  await looks(high, "x.md");
  await does(high, { "x.md": "high", "z.md": "high" });
  await does(a, { "x.md": "a again" });
  await does(a, { "merge.md": BASE.replace("one", "ONE") });
  await does(b, { "merge.md": BASE.replace("three", "THREE") });
  await does(a, { "review.md": "a" });
  await does(b, { "review.md": "b" });
  await review(telling, answer);
  await it.clock.advance(2_000);
  for (const session of [a, b]) {
    it.observer.end(session, { outcome: "completed" });
    await ask(({ coordinator }) => coordinator.endChild(session, { outcome: "completed" }));
  }
  it.plans.end("high", { outcome: "completed", reply: "{}" });
  await it.clock.advance(2_000);
}

/** The owner wants what one of its steps holds, and people answer. */
async function review(telling: Telling, answer: ReviewAnswer): Promise<void> {
  const { ask, files } = telling;
  const call = write(files, OWNER, { "review.md": "owner" });
  const asked = await ask(({ coordinator }) => coordinator.arbiter.request(call));
  if (asked?.kind !== "review" || answer === "unanswered") return;
  const isSettled = await ask(() => asked.settle(answer).then(() => true));
  if (isSettled && answer === "approved") await happens(telling, call, { kind: "granted" }, ["review.md"]);
}

async function perform(telling: Telling, call: ToolCall, names: readonly string[]): Promise<void> {
  const answer = await telling.ask(({ coordinator }) => coordinator.arbiter.request(call));
  if (answer?.kind === "granted") await happens(telling, call, answer, names);
}

async function happens(
  { store, host: it, granted, ask, files }: Telling,
  call: ToolCall,
  answer: WriteAnswer & { kind: "granted" },
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    const resource = `file:${files.folder}/${name}`;
    const { claims } = await store.overlapping({ resource, atMs: it.clock.now(), limit: 100 });
    const holders = claims.map(({ runId, stepId }) => `${runId}/${stepId}`);
    granted.push({ session: call.session, resource, holders });
  }
  call.tools(answer.params);
  await ask(({ coordinator }) => coordinator.arbiter.callEnded(call.callKey));
}

export function eventsOf({ ledger }: Played): RunEvent[] {
  return ledger.events().flat();
}
