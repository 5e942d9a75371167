/** Real gateways with their ledger in one PostgreSQL database: they record there, go on after a kill, and take over from each other. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "../support/gateway.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { renderScript } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { runPackedProgram } from "./packed-program.ts";
import {
  createPluginConfig,
  hasEnded,
  openStage,
  PHASE1,
  stepNamed,
  type Known,
  type Stage,
} from "./stage.ts";

const OWNER = "agent:main:on-postgres";
const LEASE_MS = 5_000;

let schema: TestSchema;
let password: string;
let stage: Stage;

/** The password is in the environment only. */
function openOnDatabase(gatewayId: string): Promise<Stage> {
  const url = new URL(schema.url);
  url.password = "";
  return openStage({
    isFresh: true,
    ledgerUrl: schema.url,
    env: { COORDINATION_E2E_LEDGER_PASSWORD: password },
    pluginConfig: createPluginConfig({
      ...PHASE1,
      ledger: { url: url.href, password: "${COORDINATION_E2E_LEDGER_PASSWORD}" },
      gateway: { id: gatewayId, leaseMs: LEASE_MS },
    }),
  });
}

beforeAll(async () => {
  schema = await createTestSchema();
  password = decodeURIComponent(new URL(schema.url).password);
  stage = await openOnDatabase("first");
});

afterAll(async () => {
  await stage.close();
  await schema[Symbol.asyncDispose]();
});

function planOf(coordinationId: string, delayMs: number, timeoutMs = 60_000): Json {
  return {
    coordinationId,
    objective: `objective of ${coordinationId}`,
    ownerSession: OWNER,
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

function waitForPlan(coordinationId: string, condition: (state: Known) => boolean): Promise<Known> {
  return waitFor(
    async () => {
      const state = (await stage.of(OWNER)).find((candidate) => candidate.coordinationId === coordinationId);
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

describe("a gateway whose ledger is on a PostgreSQL server", () => {
  it("records spawns and plans there, and its commands read them there", async () => {
    const session = "agent:main:spawner";
    const spawn = [{ label: "child", task: renderScript({ say: "result" }) }];
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    const spawned = await stage.until(session, hasEnded);
    expect(stepNamed(spawned, "child").phase.status).toBe("completed");
    await stage.gateway.call("coordination.plan.run", { plan: planOf("co-on-postgres", 0) });
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

  it("goes on after a kill with what it began, each step once", async () => {
    await stage.gateway.call("coordination.plan.run", {
      // The host finds a child that a kill took with it only a minute later.
      plan: planOf("co-killed", 3_000, 20_000),
    });
    await waitForPlan("co-killed", (state) => stepPhase(state, "second") === "running");
    await stage.gateway.kill9();
    await stage.restart();
    const ended = await waitForPlan("co-killed", hasEnded);
    expect(ended).toMatchObject({ status: "success" });
    const completed = (await stage.events(ended)).filter(({ type }) => type === "step.completed");
    expect(completed.map(({ nodeId }) => nodeId)).toEqual(["first", "second", "@delivery"]);
    expect((await stage.verify()).problems).toEqual([]);
  });
});

describe("two gateways on one database", () => {
  let other: Stage;

  beforeAll(async () => {
    other = await openOnDatabase("second");
  });

  afterAll(async () => {
    await other.close();
  });

  it("take requests for each other", async () => {
    await stage.gateway.call("coordination.plan.run", { plan: planOf("co-cancelled", 55_000) });
    await waitForPlan("co-cancelled", (state) => stepPhase(state, "second") === "running");
    expect(await readLedger("show", "co-cancelled")).toMatchObject({
      gateway: { home: "first", drives: "first" },
    });
    await other.gateway.call("coordination.plan.cancel", { coordinationId: "co-cancelled" });
    expect(await waitForPlan("co-cancelled", hasEnded)).toMatchObject({ status: "cancelled" });
  });

  it("go on with what a killed one began, and leave to it what only it can end", async () => {
    const session = "agent:main:parent-of-lost";
    const spawn = [{ label: "lost", task: renderScript({ delayMs: 60_000, say: "too late" }) }];
    await stage.gateway.agent({ sessionKey: session, message: renderScript({ spawn }, { say: "ok" }) });
    await stage.gateway.call("coordination.plan.run", { plan: planOf("co-taken", 10_000) });
    await waitForPlan("co-taken", (state) => stepPhase(state, "second") === "running");
    await stage.gateway.kill9();
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

    await stage.restart();
    expect(await waitForPlan("co-taken", hasEnded)).toMatchObject({ status: "success" });
    expect(await readSessionKeys(other)).not.toContain(OWNER);
    expect(await readSessionKeys(stage)).toContain(OWNER);
    await stage.until(session, hasEnded);
    expect((await stage.verify()).problems).toEqual([]);
  });
});

async function readSessionKeys({ gateway }: Stage): Promise<string[]> {
  const { sessions } = (await gateway.call("sessions.list", {})) as { sessions: { key: string }[] };
  return sessions.map(({ key }) => key);
}

function stepPhase(state: Known, stepId: string): string | undefined {
  return [...state.steps.values()].find(({ spec }) => spec.stepId === stepId)?.phase.status;
}
