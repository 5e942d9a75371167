/**
 * Three `serve` on one database while faults come: kills, pauses beyond the lease, lost connections, restarts of the server. The
 * database's records are checked at the end: nothing acknowledged lost, one end for each run, one run for each key, and no owner beside
 * another.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import {
  createTestSchema,
  startOwnServer,
  type OwnServer,
  type TestSchema,
} from "../support/postgres-server.ts";
import { startServe, type ServeProcess } from "../support/serve-process.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createFleetWorkflows } from "../support/workflow-definitions.ts";
import { checkLog } from "../support/workflow-plays.ts";
import { findBreaches, noteChanges, takeChanges, type Acknowledgement } from "./fleet-history.ts";

const FAULTS = chooseCampaignSize("FLEET_FAULTS", { short: 8, long: 500 });
const LEASE_MS = 2_000;
const PROCESSES = 3;
const CLIENTS = 3;
/** Between two runs of a client: the faults are what is looked for, not how much it bears. */
const PACE_MS = 200;
const ENDING_MS = 60_000;
const TIMEOUT_MS = 2 * ENDING_MS + FAULTS * 15_000;

/** The waits take longer than a pause, so that an owner which wakes has work of before in its hands. */
const DEFINITIONS = createFleetWorkflows(["a", "b", "c", "d", "e", "f"], 700);

let server: OwnServer;
let schema: TestSchema;
let folder: TempFolder;
const fleet = new Map<number, ServeProcess>();
const killedAtMs = new Map<string, number>();
const acknowledgements: Acknowledgement[] = [];
let starts = 0;

/** Each process has a name of its own on its connections. */
const names = new Map<number, string>();

async function start(place: number): Promise<void> {
  starts += 1;
  const name = `serve-${starts}`;
  const ledger = new URL(schema.url);
  ledger.searchParams.set("application_name", name);
  names.set(place, name);
  const args = ["--lease", String(LEASE_MS / 1_000), "--interrupt-key", folder.file("interrupt-key")];
  fleet.set(
    place,
    await startServe({ ledger: ledger.href, folder: folder.path, definitions: DEFINITIONS, args }),
  );
}

beforeAll(async () => {
  server = await startOwnServer();
  schema = await createTestSchema(server);
  folder = createTempFolder();
  writeFileSync(folder.file("interrupt-key"), randomBytes(32), { mode: 0o600 });
  await (await openTestPostgres(schema.url)).close();
  await noteChanges(schema);
  await Promise.all(Array.from({ length: PROCESSES }, (_, place) => start(place)));
}, 180_000);

afterAll(async () => {
  await Promise.all([...fleet.values()].map((serve) => serve.end("SIGKILL")));
  await server.stop();
  folder[Symbol.dispose]();
});

type Fault = (place: number) => Promise<void>;

const kill: Fault = async (place) => {
  // Others may see that it is gone before this process hears of it.
  killedAtMs.set(names.get(place) ?? "", Date.now());
  await fleet.get(place)?.end("SIGKILL");
  await start(place);
};

/** The others take over what it drives; then it wakes, and must write nothing to that. */
const pause: Fault = async (place) => {
  const serve = fleet.get(place)?.process;
  serve?.kill("SIGSTOP");
  await delay(LEASE_MS * 1.5);
  serve?.kill("SIGCONT");
};

const cutConnections: Fault = async (place) => {
  await schema.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [
    names.get(place),
  ]);
};

const restartServer: Fault = async () => {
  await server.stop();
  await server.start();
};

const KINDS: readonly Fault[] = [kill, pause, cutConnections, kill, restartServer];

function getMember(index: number): ServeProcess {
  const serve = fleet.get(index % PROCESSES);
  if (!serve) throw new Error("the fleet has not started");
  return serve;
}

/** Asks one process after the other for runs, and for whatever they wait for, until it is told to stop. */
async function playClient(client: number, isOver: () => boolean): Promise<void> {
  for (let round = 0; !isOver(); round += 1) {
    const first = client + round;
    const workflowId = DEFINITIONS[first % DEFINITIONS.length]?.id;
    const key = `key-${client}-${round}`;
    const request = { body: { workflowId, inputs: {} }, headers: { "idempotency-key": key } };
    // A balancer sends a request again that it has no answer of.
    for (const place of [first, first + 1]) {
      const answer = await getMember(place)
        .ask("POST", "/v1/runs", request)
        .catch(() => undefined);
      if (answer?.status !== 201) continue;
      const runId = String(answer.body["runId"]);
      acknowledgements.push({ key, runId });
      if (workflowId === "gated") await approve(getMember(first + 2), runId);
    }
    await delay(PACE_MS);
  }
}

async function approve(serve: ServeProcess, runId: string): Promise<void> {
  const body = { resumeValue: { action: "accept" } };
  await serve.ask("POST", `/v1/runs/${runId}/interrupts/gate`, { body }).catch(() => undefined);
}

it(
  `bears ${FAULTS} faults: loses nothing that was acknowledged, and no two processes drive one run`,
  async () => {
    let isOver = false;
    const clients = Array.from({ length: CLIENTS }, (_, client) => playClient(client, () => isOver));
    for (let fault = 0; fault < FAULTS; fault += 1) {
      const before = acknowledgements.length;
      await KINDS[fault % KINDS.length]?.(fault % PROCESSES);
      await waitFor(() => acknowledgements.length > before + CLIENTS, {
        what: `runs to be acknowledged after fault ${fault}`,
        timeoutMs: 60_000,
      });
    }
    isOver = true;
    await Promise.all(clients);
    const unended = await endAll().then(
      () => [],
      (error: unknown) => [String(error)],
    );
    const changes = await takeChanges(schema);
    const breaches = findBreaches({ changes, acknowledgements, killedAtMs, leaseMs: LEASE_MS });
    expect([...breaches, ...unended]).toEqual([]);
    await verify();
  },
  TIMEOUT_MS,
);

/** Approves whatever waits for people, until nothing is open. */
async function endAll(): Promise<void> {
  const ledger = await openTestPostgres(schema.url);
  const approveOpen = async (): Promise<boolean> => {
    const open = await ledger.workflows.list({ limit: 200, status: "running" });
    await Promise.all(open.map(({ runId }) => approve(getMember(0), runId)));
    return open.length === 0;
  };
  const ending = { what: "all runs to end", timeoutMs: ENDING_MS, everyMs: 500 };
  try {
    await waitFor(approveOpen, ending);
  } finally {
    await ledger.close();
  }
}

async function verify(): Promise<void> {
  const ledger = await openTestPostgres(schema.url);
  expect((await verifyLedger(ledger)).problems).toEqual([]);
  for (const { runId, length } of await ledger.workflows.list({ limit: 1_000 }))
    checkLog(await ledger.workflows.read(runId, { from: 0, limit: length }));
  await ledger.close();
}
