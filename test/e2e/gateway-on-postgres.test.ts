/**
 * Two real gateways with their ledger in one PostgreSQL database: they take over from each other, go on after a kill, and record there.
 * The host finds what a kill took with it only a minute after the start: further tests fill that time.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "../support/gateway.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { renderScript, type Rule } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { runPackedProgram } from "./packed-program.ts";
import { isAbout } from "./plan-forks-stage.ts";
import {
  createPluginConfig,
  hasEnded,
  openStage,
  PHASE1,
  stepNamed,
  type OpenedCoordination,
  type Stage,
} from "./stage.ts";

const OWNER = "agent:main:on-postgres";
const OWNER_AT_SECOND = "agent:main:at-the-second";
const LEASE_MS = 5_000;

let schema: TestSchema;
let password: string;
let stage: Stage;
let other: Stage;

/** Gateways that were killed. */
const killed = new Set<Stage>();

/** The password is in the environment only. */
function openOnDatabase(gatewayId: string, rules: readonly Rule[]): Promise<Stage> {
  const url = new URL(schema.url);
  url.password = "";
  const options = {
    isFresh: true,
    ledgerUrl: schema.url,
    env: { COORDINATION_E2E_LEDGER_PASSWORD: password },
    pluginConfig: createPluginConfig({
      ...PHASE1,
      ledger: { url: url.href, password: "${COORDINATION_E2E_LEDGER_PASSWORD}" },
      gateway: { id: gatewayId, leaseMs: LEASE_MS },
    }),
  };
  return openStage(options, rules);
}

/** Keeps the agent of a plan's second step at work until the gateway is killed. */
const hangUntilKilled = (coordinationId: string, findStage: () => Stage): Rule => ({
  when: (_, request) => !killed.has(findStage()) && isAbout(request, coordinationId, "second"),
  turns: [{ say: "never", delayMs: 280_000 }],
});

async function kill(victim: Stage): Promise<void> {
  killed.add(victim);
  await victim.gateway.kill9();
}

beforeAll(async () => {
  schema = await createTestSchema();
  password = decodeURIComponent(new URL(schema.url).password);
  [stage, other] = await Promise.all([
    openOnDatabase("first", [hangUntilKilled("co-taken", () => stage)]),
    openOnDatabase("second", [hangUntilKilled("co-killed", () => other)]),
  ]);
});

afterAll(async () => {
  await Promise.all([stage.close(), other.close()]);
  await schema[Symbol.asyncDispose]();
});

interface PlanFields {
  readonly ownerSession?: string;
  readonly timeoutMs?: number;
  /** How long the agent of the second step works. */
  readonly delayMs?: number;
}

function planOf(
  coordinationId: string,
  { ownerSession = OWNER, timeoutMs = 60_000, delayMs = 0 }: PlanFields = {},
): Json {
  return {
    coordinationId,
    objective: `objective of ${coordinationId}`,
    ownerSession,
    conflictPolicy: {},
    failurePolicy: { retryBudget: 5, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    // A first turn after a start can outlast its time where the machine is busy: more tries than one kill needs.
    defaults: { retry: { budget: 5, backoffMs: 200 }, timeoutMs },
    steps: [
      { stepId: "first", agent: "main", task: renderScript({ say: "first result" }) },
      {
        stepId: "second",
        agent: "main",
        task: renderScript({ delayMs, say: "second result" }),
        dependsOn: ["first"],
      },
    ],
  };
}

function waitForPlan(
  coordinationId: string,
  condition: (state: OpenedCoordination) => boolean,
  ownerSession = OWNER,
): Promise<OpenedCoordination> {
  return waitFor(
    async () => {
      const state = (await stage.of(ownerSession)).find(
        (candidate) => candidate.coordinationId === coordinationId,
      );
      return state && condition(state) ? state : undefined;
    },
    { what: `plan ${coordinationId}`, timeoutMs: 240_000, everyMs: 100 },
  );
}

/** Returns what the plugin's own program prints of the ledger. */
async function readLedger(...args: readonly string[]): Promise<unknown> {
  const { stdout, stderr } = await runPackedProgram([...args, "--json"], schema.url);
  expect(stdout + stderr).not.toContain(password);
  return JSON.parse(stdout);
}

/** Returns what the host's command says, which knows the configuration of the gateway. */
async function readStatus(): Promise<unknown> {
  const { stdout, stderr } = await stage.gateway.openclaw(["coordination", "status", "--json"]);
  expect(stdout + stderr).not.toContain(password);
  return JSON.parse(stdout);
}

describe("two gateways on one database", () => {
  const session = "agent:main:parent-of-lost";

  it("go on with what a killed one began, and leave to it what only it can end", async () => {
    const spawn = [{ label: "lost", task: renderScript({ delayMs: 60_000, say: "too late" }) }];
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    await stage.gateway.call("coordination.plan.run", { plan: planOf("co-taken") });
    await waitForPlan("co-taken", (state) => stepPhase(state, "second") === "running");
    await kill(stage);
    const finished = await waitForPlan("co-taken", (state) => stepPhase(state, "second") === "completed");
    expect(stepPhase(finished, "first")).toBe("completed");
    const types = (await stage.events(finished)).map(({ type, nodeId }) => `${type} ${nodeId ?? ""}`);
    expect(types).toEqual(expect.arrayContaining(["step.failed second", "step.completed second"]));
    expect(finished.kind).toBe("open");
    const spawned = await stage.until(session, () => true);
    expect(stepNamed(spawned, "lost").phase.status).toBe("running");
    expect(await readLedger("show", "co-taken")).toMatchObject({
      gateway: { home: "first", drives: "second" },
    });
  });

  it("go on after a kill with what they began themselves, each step once", async () => {
    const plan = planOf("co-killed", {
      ownerSession: OWNER_AT_SECOND,
      // The host finds a child that a kill took with it only a minute later.
      timeoutMs: 20_000,
    });
    await other.gateway.call("coordination.plan.run", { plan });
    const waitForKilled = (condition: (state: OpenedCoordination) => boolean): Promise<OpenedCoordination> =>
      waitForPlan("co-killed", condition, OWNER_AT_SECOND);
    await waitForKilled((state) => stepPhase(state, "second") === "running");
    await kill(other);
    await Promise.all([other.restart(), stage.restart()]);
    const ended = await waitForKilled(hasEnded);
    expect(ended).toMatchObject({ status: "success" });
    const completed = (await stage.events(ended)).filter(({ type }) => type === "step.completed");
    expect(completed.map(({ nodeId }) => nodeId)).toEqual(["first", "second", "@delivery"]);
    expect((await stage.verify()).problems).toEqual([]);
  });

  it("take requests for each other", async () => {
    await stage.gateway.call("coordination.plan.run", { plan: planOf("co-cancelled", { delayMs: 55_000 }) });
    await waitForPlan("co-cancelled", (state) => stepPhase(state, "second") === "running");
    expect(await readLedger("show", "co-cancelled")).toMatchObject({
      gateway: { home: "first", drives: "first" },
    });
    await other.gateway.call("coordination.plan.cancel", { coordinationId: "co-cancelled" });
    expect(await waitForPlan("co-cancelled", hasEnded)).toMatchObject({ status: "cancelled" });
  });

  it("record spawns and plans there, and their commands read them there", async () => {
    const session = "agent:main:spawner";
    const spawn = [{ label: "child", task: renderScript({ say: "result" }) }];
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    const spawned = await stage.until(session, hasEnded);
    expect(stepNamed(spawned, "child").phase.status).toBe("completed");
    await stage.gateway.call("coordination.plan.run", { plan: planOf("co-on-postgres") });
    const planned = await waitForPlan("co-on-postgres", hasEnded);
    expect(planned).toMatchObject({ status: "success" });
    expect((await stage.verify()).problems).toEqual([]);
    expect(existsSync(join(stage.gateway.stateDir, "coordination", "ledger.sqlite"))).toBe(false);

    const ids = [spawned, planned].map(({ coordinationId }) => coordinationId);
    const listed = (await readLedger("list")) as { coordinationId: string }[];
    expect(listed.map(({ coordinationId }) => coordinationId)).toEqual(expect.arrayContaining(ids));
    for (const id of ids)
      expect(listed).toContainEqual(
        expect.objectContaining({ coordinationId: id, gateway: { home: "first" } }),
      );
    expect(await readStatus()).toMatchObject({
      ledger: { path: expect.stringMatching(/^postgres:\/\//u) as string, exists: true },
      health: { state: "ok" },
    });
    expect(stage.gateway.log()).not.toContain(password);
  });

  it("end what only they could end when they are there again", async () => {
    expect(await waitForPlan("co-taken", hasEnded)).toMatchObject({ status: "success" });
    expect(await readSessionKeys(other)).not.toContain(OWNER);
    expect(await readSessionKeys(stage)).toContain(OWNER);
    await stage.until(session, hasEnded, 120_000);
    expect((await stage.verify()).problems).toEqual([]);
  });
});

async function readSessionKeys({ gateway }: Stage): Promise<string[]> {
  const { sessions } = (await gateway.call("sessions.list", {})) as { sessions: { key: string }[] };
  return sessions.map(({ key }) => key);
}

function stepPhase(state: OpenedCoordination, stepId: string): string | undefined {
  return [...state.steps.values()].find(({ spec }) => spec.stepId === stepId)?.phase.status;
}
