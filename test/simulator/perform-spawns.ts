/** Owns: what models' spawns and their children do: asked before, made or refused, told after, spoken, ended. */
import { hash } from "node:crypto";
import type { AgentId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { formatPlaceholder } from "../../src/agents/coordination/gates/placeholder.ts";
import { mustWithhold } from "../../src/agents/coordination/gates/withholds.ts";
import type { SpawnRequest } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import type { SpawnClaim } from "../../src/agents/coordination/runtime/spawns/spawn-claim.ts";
import type { ChildEnding } from "../../src/agents/coordination/contracts/observation.ts";
import { spoilWords } from "./hostile-words.ts";
import type { Move } from "./moves.ts";
import { pickGateway } from "./perform-move.ts";
import { pickAgentAtWork } from "./perform-plans.ts";
import type { SpawnPromise } from "./promises.ts";
import type { SpawnedChild } from "./spawn-host.ts";
import { callGateway, countEvents, type Gateway, type World } from "./world.ts";

type SpawnMove = Extract<Move, { kind: "spawn" }>;

export function pickChild({ children }: World, index: number): SpawnedChild | undefined {
  return children[index % Math.max(1, children.length)];
}

export function spawnChild(world: World, move: SpawnMove): void {
  if (move.agentOfPlan !== undefined) {
    spawnByAgent(world, move, move.agentOfPlan);
    return;
  }
  const parent = move.parent === undefined ? undefined : pickChild(world, move.parent);
  const isAlive = parent && !parent.ending;
  const gateway = isAlive ? pickGateway(world, parent.gateway) : pickGateway(world, move.gateway);
  const source = isAlive ? parent.session : gateway.owner;
  void tellSpawn(world, gateway, { move, request: requestOf(world, { move, gateway, source }) });
}

function spawnByAgent(world: World, move: SpawnMove, index: number): void {
  const agent = pickAgentAtWork(world, index);
  if (!agent) return;
  const { gateway, order } = agent;
  const request = requestOf(world, { move, gateway, source: order.childSessionKey });
  void tellSpawn(world, agent.gateway, { move, request });
}

interface SpawnWish {
  readonly move: SpawnMove;
  readonly gateway: Gateway;
  readonly source: SessionKey;
}

function requestOf(world: World, { move, gateway: { index }, source }: SpawnWish): SpawnRequest {
  const trace = `trace-${index}-${move.trace}`;
  return {
    sourceSession: source,
    sourceAgent: "main" as AgentId,
    traceId: trace,
    spawn: {
      runner: "subagent",
      agentId: move.agent as AgentId,
      collect: false,
      call: { toolCallId: `call-${move.call}`, runId: `run-${trace}` },
    },
    input: contentOf(spoilWords(world, `task ${move.task}`)),
    objective: contentOf(spoilWords(world, `objective of ${trace}`)),
  };
}

function contentOf(text: string): SpawnRequest["input"] {
  return { ref: { sha256: hash("sha256", text), bytes: Buffer.byteLength(text) }, text };
}

async function tellSpawn(
  world: World,
  gateway: Gateway,
  { move, request }: { readonly move: SpawnMove; readonly request: SpawnRequest },
): Promise<void> {
  const promise: SpawnPromise = { toolCallId: `call-${move.call}`, source: request.sourceSession };
  world.promises.spawns.push(promise);
  const admission = await callGateway(gateway, ({ coordinator }) => coordinator.admitSpawn(request));
  promise.answeredBy = countEvents(world);
  promise.answeredAtMs = world.clock.now();
  if (admission?.kind === "refused") promise.refused = { ...admission, isCalm: !gateway.life.isDisturbed };
  // A spawn that could not be recorded does not happen, and a dead gateway spawns nothing.
  if (admission?.kind !== "admitted") return;
  promise.admitted = admission.envelope;
  const { coordinationId, stepId, sourceSession } = admission.envelope;
  const claim: SpawnClaim = { coordinationId, stepId, sourceSession, toolCallId: promise.toolCallId };
  if (move.fate === "forgets") return;
  if (move.fate === "refuses") {
    const noted = await callGateway(gateway, async ({ coordinator }) => {
      await coordinator.refuseSpawn(claim, spoilWords(world, "not allowed"));
      return true;
    });
    if (noted) promise.refusalNoted = true;
    return;
  }
  const child = gateway.spawns.spawn(request);
  promise.child = child;
  await tellOfChild(world, gateway, { move, claim, promise, child });
}

interface SpawnedMove {
  readonly move: SpawnMove;
  readonly claim: SpawnClaim;
  readonly promise: SpawnPromise;
  readonly child: SpawnedChild;
}

async function tellOfChild(
  world: World,
  gateway: Gateway,
  { move, claim, promise, child }: SpawnedMove,
): Promise<void> {
  const { session: childSessionKey, childRunId } = child;
  if (move.fate === "makes a child and keeps silent") return;
  if (move.fate === "makes a child and says that it failed") {
    await callGateway(gateway, ({ coordinator }) =>
      coordinator.failSpawn(claim, spoilWords(world, "no answer")),
    );
    return;
  }
  const confirmed = await callGateway(gateway, ({ coordinator }) =>
    coordinator.confirmSpawn(claim, { childSessionKey, childRunId }),
  );
  if (confirmed) promise.confirmed = confirmed;
}

export function endChild(world: World, move: Extract<Move, { kind: "end" }>): void {
  const child = pickChild(world, move.child);
  if (!child) return;
  // A second end of the same child is a message that comes late or again: the first one is the truth.
  const isFirst = child.ending === undefined;
  if (isFirst) {
    child.ending = spoilEnding(world, move.ending);
    child.endedAtMs = world.clock.now();
  }
  const gateway = pickGateway(world, child.gateway);
  const promise = world.promises.spawns.find((each) => each.child === child);
  for (let time = 0; time < move.heard; time += 1)
    void callGateway(gateway, async ({ coordinator }) => {
      await coordinator.endChild(child.session, child.ending ?? move.ending);
      if (isFirst && promise) promise.endHeardAtMs ??= world.clock.now();
    });
}

function spoilEnding(world: World, ending: ChildEnding): ChildEnding {
  return ending.outcome === "failed"
    ? { ...ending, message: spoilWords(world, ending.message ?? "") }
    : ending;
}

/** The last words of a child's turn, kept back from its parent where its gate says so. */
export function sayAsChild(world: World, move: Extract<Move, { kind: "speak" }>): void {
  const child = pickChild(world, move.child);
  if (!child || child.ending) return;
  const gateway = pickGateway(world, child.gateway);
  const text = `${spoilWords(world, "words of ")}${child.session}\n${JSON.stringify({ confidence: move.confidence / 100 })}`;
  void callGateway(gateway, async ({ coordinator, texts }) => {
    const gated = await coordinator.heldSessions.gated(child.session);
    if (!gated || !(gated.isStrict || mustWithhold(gated.gate, text, gated.reported))) return;
    const shown = formatPlaceholder(texts.add(child.session, text));
    texts.keeping(child.session, "words", () => coordinator.heldSessions.keep(child.session, shown));
  });
}
