/**
 * Owns: one story of steps that contend for files, told to gateways of which one dies or meets an error at a given append.
 * Answers to the host are remembered for the checks.
 */
import type { AgentId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { ReviewAnswer, WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { read, write, type ToolCall } from "../core/arbiter-calls.ts";
import {
  createHost,
  spawnChild,
  createValueFiles,
  type Host,
  type SceneFiles,
  type Store,
} from "../core/arbiter-scene.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { createMemoryLedger, type MemoryLedger } from "../support/memory-store.ts";
import { startProcess, type Appends, type Fault, type Process } from "./arbiter-process.ts";

const OTHER = "agent:main:other" as SessionKey;
const BASE = "one\n-\ntwo\n-\nthree\n";

/** A call that the host was told may happen, and what the ledger held at that moment. */
export interface GrantedCall {
  readonly session: SessionKey;
  readonly resource: string;
  readonly holders: readonly string[];
}

/** The ledger, the host and the files after a play, and the calls that were granted in it. */
export interface PlayedArbiter {
  readonly ledger: MemoryLedger;
  readonly store: Store;
  readonly host: Host;
  readonly files: SceneFiles;
  readonly granted: readonly GrantedCall[];
  readonly appends: number;
  readonly deaths: number;
  readonly stepOf: ReadonlyMap<SessionKey, string>;
}

interface ArbiterStage {
  readonly host: Host;
  readonly files: SceneFiles;
  readonly store: Store;
  readonly granted: GrantedCall[];
  /** Asks the living process; starts another one where it dies. `undefined`: nobody lived to answer, or it failed. */
  readonly ask: <T>(work: (process: Process) => Promise<T>) => Promise<T | undefined>;
}

export async function playArbiter(answer: ReviewAnswer, fault?: Fault): Promise<PlayedArbiter> {
  const host = createHost();
  const files = createValueFiles();
  const ledger = createMemoryLedger();
  const appends: Appends = { isArmed: false, count: 0 };
  const bootProcess = (): Process =>
    startProcess({ host: host, files, open: () => ledger.open(host.clock), appends, fault });
  const store = ledger.open(host.clock);
  const granted: GrantedCall[] = [];
  let deaths = 0;
  let process = bootProcess();
  await process.coordinator.start();
  const rebootUntilAlive = async (): Promise<void> => {
    while (process.isDead()) {
      deaths += 1;
      await host.clock.advance(1_000);
      process = bootProcess();
      await Promise.race([process.coordinator.start(), process.died]);
    }
  };
  const ask: ArbiterStage["ask"] = async (work) => {
    const asker = process;
    const answered = await Promise.race([
      work(asker).catch(() => undefined),
      asker.died.then(() => undefined),
    ]);
    await waitUntilSettled();
    await rebootUntilAlive();
    return answered;
  };
  const stepOf = await prepare(process, host);
  appends.isArmed = true;
  await tell({ host: host, files, store, granted, ask }, { stepOf, answer });
  await host.clock.advance(30 * 60_000);
  await rebootUntilAlive();
  await host.clock.advance(30 * 60_000);
  await process.coordinator.stop();
  return { ledger, store, host: host, files, granted, appends: appends.count, deaths, stepOf };
}

/** Two steps of one coordination, and one of another, which is more urgent. */
async function prepare({ coordinator }: Process, host: Host): Promise<Map<SessionKey, string>> {
  const a = await spawnChild(coordinator, host.observer, { task: "a" });
  const b = await spawnChild(coordinator, host.observer, { task: "b" });
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
  for (let turn = 0; turn < 8; turn += 1) await waitUntilSettled();
  const high = host.plans.orders[0]?.childSessionKey ?? OTHER;
  return new Map([
    [a, "co-1/step-1"],
    [b, "co-1/step-2"],
    [OWNER, "co-1/@owner"],
    [high, "plan-1/high"],
  ]);
}

async function tell(
  telling: ArbiterStage,
  { stepOf, answer }: { readonly stepOf: ReadonlyMap<SessionKey, string>; readonly answer: ReviewAnswer },
): Promise<void> {
  const { files, ask, host } = telling;
  const [a = OWNER, b = OWNER, , high = OTHER] = stepOf.keys();
  const doWrite = (session: SessionKey, texts: Readonly<Record<string, string>>) =>
    perform(telling, write(files, session, texts), Object.keys(texts));
  const lookAt = (session: SessionKey, name: string) =>
    ask(({ coordinator }) => coordinator.arbiter.request(read(files, session, name)));
  files.put("merge.md", BASE);
  for (const session of [a, b]) await lookAt(session, "merge.md");
  await doWrite(a, { "x.md": "a", "y.md": "a" });
  await doWrite(b, { "x.md": "b" });
  await lookAt(high, "x.md");
  await doWrite(high, { "x.md": "high", "z.md": "high" });
  await doWrite(a, { "x.md": "a again" });
  await doWrite(a, { "merge.md": BASE.replace("one", "ONE") });
  await doWrite(b, { "merge.md": BASE.replace("three", "THREE") });
  await doWrite(a, { "review.md": "a" });
  await doWrite(b, { "review.md": "b" });
  await reviewWrite(telling, answer);
  await host.clock.advance(2_000);
  for (const session of [a, b]) {
    host.observer.end(session, { outcome: "completed" });
    await ask(({ coordinator }) => coordinator.endChild(session, { outcome: "completed" }));
  }
  host.plans.end("high", { outcome: "completed", reply: "{}" });
  await host.clock.advance(2_000);
}

/** The owner wants what one of its steps holds, and people answer. */
async function reviewWrite(telling: ArbiterStage, answer: ReviewAnswer): Promise<void> {
  const { ask, files } = telling;
  const call = write(files, OWNER, { "review.md": "owner" });
  const firstAnswer = await ask(({ coordinator }) => coordinator.arbiter.request(call));
  if (firstAnswer?.kind !== "review" || answer === "unanswered") return;
  const isSettled = await ask(() => firstAnswer.settle(answer).then(() => true));
  if (isSettled && answer === "approved")
    await makeItHappen(telling, call, { kind: "granted" }, ["review.md"]);
}

async function perform(telling: ArbiterStage, call: ToolCall, names: readonly string[]): Promise<void> {
  const answer = await telling.ask(({ coordinator }) => coordinator.arbiter.request(call));
  if (answer?.kind === "granted") await makeItHappen(telling, call, answer, names);
}

async function makeItHappen(
  { store, host, granted, ask, files }: ArbiterStage,
  call: ToolCall,
  answer: WriteAnswer & { kind: "granted" },
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    const resource = `file:${files.folder}/${name}`;
    const { claims } = await store.overlapping({ resource, atMs: host.clock.now(), limit: 100 });
    const holders = claims.map(({ runId, stepId }) => `${runId}/${stepId}`);
    granted.push({ session: call.session, resource, holders });
  }
  call.tools(answer.params);
  await ask(({ coordinator }) => coordinator.arbiter.callEnded(call.callKey));
}

export function eventsOf({ ledger }: PlayedArbiter): RunEvent[] {
  return ledger.events().flat();
}
