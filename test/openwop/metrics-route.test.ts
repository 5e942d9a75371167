/** Owns: the metrics of `serve`: who may read them, and what a scrape answers; and that without them nothing of them is loaded. */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { importsOf, listSourceFiles } from "../architecture/read-imports.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { createMetricsHost, type MetricsHost } from "../../src/plugins/compose-metrics.ts";
import {
  startServedOpenWop,
  type RunningServer,
  type ServingOptions,
} from "../../src/plugins/serve-openwop.ts";
import { openRun, quietLogger } from "../support/ledger-fixtures.ts";
import { parsePrometheusText, readCounted } from "../support/prometheus-text.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createServing } from "./create-serving.ts";

const ROOT = new URL("../../", import.meta.url);
const TOKENS = [{ tenant: "only", token: "s3cret" }];
const HOUR_MS = 3_600_000;
const NOOP = {
  id: "w",
  name: "w",
  version: "1",
  nodes: [{ id: "n", typeId: "core.noop", config: {}, inputs: {} }],
  edges: [],
  variables: [],
  settings: {},
} as unknown as ServingOptions["definitions"][number];

let folder: TempFolder;
let served: RunningServer;

beforeAll(async () => {
  folder = createTempFolder();
  served = await startServedOpenWop(
    createServing(folder.file("ledger.sqlite"), { tokens: TOKENS, metrics: true, definitions: [NOOP] }),
  );
});

afterAll(async () => {
  await served.stop();
  folder[Symbol.dispose]();
});

function readMetrics(
  token: string | undefined,
  { method = "GET", baseUrl = served.baseUrl } = {},
): Promise<Response> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return fetch(`${baseUrl}/metrics`, { method, headers });
}

describe("the metrics of serve", () => {
  it("are nobody's without a token that is known", async () => {
    for (const token of [undefined, "wrong"]) {
      const refused = await readMetrics(token);
      expect([refused.status, await refused.json()]).toEqual([
        401,
        expect.objectContaining({ error: "unauthenticated" }),
      ]);
    }
  });

  it("are in Prometheus' text format, and no cache keeps them", async () => {
    const answer = await readMetrics("s3cret");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const families = parsePrometheusText(await answer.text());
    expect(families.get("coordination_steps_total")?.type).toBe("counter");
  });

  it("can only be read, and are no part of the protocol's document", async () => {
    const refused = await readMetrics("s3cret", { method: "POST" });
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET"]);
    const document = await fetch(`${served.baseUrl}/v1/openapi.json`);
    expect(await document.text()).not.toContain("/metrics");
  });

  it("count what is appended from the start on: runs, appends of this process, coordinations of another one", async () => {
    const headers = { authorization: "Bearer s3cret", "content-type": "application/json" };
    const body = JSON.stringify({ workflowId: "w" });
    const created = await fetch(`${served.baseUrl}/v1/runs`, { method: "POST", headers, body });
    expect(created.status).toBe(201);
    const store = await openTestLedger(folder.file("ledger.sqlite"), {
      clock: { now: () => Date.now() as never, wakeAt: () => () => undefined },
    });
    await store.append(openRun("elsewhere").request);
    await store.close();
    // Gauges are read behind an answer where reading them takes long.
    const counted = await waitFor(
      async () => {
        const read = readCounted(parsePrometheusText(await (await readMetrics("s3cret")).text()));
        return read["coordination_open_coordinations"] === 1 ? read : undefined;
      },
      { what: "the open coordination", timeoutMs: 20_000, everyMs: 50 },
    );
    expect(counted).toMatchObject({
      'coordination_ledger_runs{kind="workflow"}': 1,
      'coordination_ledger_runs{kind="coordination"}': 1,
      'coordination_opened_total{origin="observed"}': 1,
      coordination_open_steps: 1,
      'coordination_ledger_append_seconds_count{outcome="written"}': expect.any(Number) as number,
      coordination_ledger_bytes: expect.any(Number) as number,
    });
  });

  it("are of all tenants, so that of several a token needs the scope metrics", async () => {
    using other = createTempFolder();
    const tokens = [...TOKENS, { tenant: "watch", token: "watcher", scopes: ["metrics"] }];
    const shared = await startServedOpenWop(
      createServing(other.file("ledger.sqlite"), { tokens, metrics: true }),
    );
    const { baseUrl } = shared;
    const refused = await readMetrics("s3cret", { baseUrl });
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ message: expect.stringContaining("scope metrics") as string }),
    ]);
    expect((await readMetrics("watcher", { baseUrl })).status).toBe(200);
    await shared.stop();
  });

  it("are not there where they are not wanted", async () => {
    using other = createTempFolder();
    const plain = await startServedOpenWop(createServing(other.file("ledger.sqlite"), { tokens: TOKENS }));
    expect((await readMetrics("s3cret", { baseUrl: plain.baseUrl })).status).toBe(404);
    await plain.stop();
  });
});

/** Prints the address of every module that the process loads. */
const NOTE_MODULES = `
import { registerHooks } from "node:module";
globalThis.loaded = [];
registerHooks({ load: (url, context, next) => (globalThis.loaded.push(url), next(url, context)) });
`;

const PROBE = `
const { startServedOpenWop } = await import("./src/plugins/serve-openwop.ts");
const [ledgerPath, metrics] = process.argv.slice(1);
const served = await startServedOpenWop({
  ledgerPath, definitions: [], version: "0", port: 0, hostname: "127.0.0.1", tokens: [{ tenant: "t", token: "token" }],
  allowRemote: false, testSeams: false, verbose: false, confidenceFloor: 0.5, escalationThreshold: 0.7, privateOrigins: [],
  peerTokens: {}, log: () => undefined, metrics: metrics === "on",
});
await fetch(served.baseUrl + "/metrics", { headers: { authorization: "Bearer token" } });
await served.stop();
console.log(JSON.stringify(globalThis.loaded.filter((url) => /prom-client|plugins\\/metrics|compose-metrics/u.test(url))));
`;

it("metrics tell of a ledger whose gateway coordinates nothing any more", async () => {
  using other = createTempFolder();
  const ledgerPath = other.file("ledger.sqlite");
  const store = await openTestLedger(ledgerPath);
  await store.append(openRun(1).request);
  await store.close();
  const refusal = new CoordinationError("GATEWAY_REPLACED", "another process took over");
  const prepare = (): Promise<never> => Promise.reject(refusal);
  const metrics = createMetricsHost({ ledgerPath, logger: quietLogger, prepare });
  expect(readCounted(parsePrometheusText(await metrics.scrape()))["coordination_open_coordinations"]).toBe(1);
  await metrics.close();
});

describe("metrics of a process that begins", () => {
  const countOpened = async (metrics: MetricsHost): Promise<number | undefined> =>
    readCounted(parsePrometheusText(await metrics.scrape()))['coordination_opened_total{origin="observed"}'];

  it("count nothing from before it, also where an event is of a clock that is ahead", async () => {
    using other = createTempFolder();
    const ledgerPath = other.file("ledger.sqlite");
    const store = await openTestLedger(ledgerPath);
    await store.append(openRun("in-time").request);
    const { request } = openRun("ahead");
    const timestamp = new Date(Date.now() + HOUR_MS).toISOString();
    await store.append({ ...request, events: request.events.map((event) => ({ ...event, timestamp })) });
    const metrics = createMetricsHost({ ledgerPath, logger: quietLogger });
    expect(await countOpened(metrics)).toBeUndefined();
    await store.append(openRun("later").request);
    expect(await countOpened(metrics)).toBe(1);
    await metrics.close();
    await store.close();
  });

  it("count a ledger that is created later from its first event on", async () => {
    using other = createTempFolder();
    const ledgerPath = other.file("ledger.sqlite");
    const metrics = createMetricsHost({ ledgerPath, logger: quietLogger });
    await expect(metrics.scrape()).rejects.toMatchObject({ code: "LEDGER_NOT_FOUND" });
    const store = await openTestLedger(ledgerPath);
    await store.append(openRun("first").request);
    expect(await countOpened(metrics)).toBe(1);
    await metrics.close();
    await store.close();
  });
});

describe("the code of the metrics", () => {
  it.each(["off", "on"])("is loaded where they are wanted, and nowhere else: %s", (setting) => {
    using other = createTempFolder();
    const note = `data:text/javascript,${encodeURIComponent(NOTE_MODULES)}`;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", note, "--input-type=module", "--eval", PROBE, other.file("ledger.sqlite"), setting],
      { cwd: ROOT, encoding: "utf8" },
    );
    expect(stderr).not.toContain("Error");
    const loaded = JSON.parse(stdout) as string[];
    expect(loaded.some((url) => url.includes("prom-client"))).toBe(setting === "on");
    if (setting === "off") expect(loaded).toEqual([]);
  });

  it("is reached by value from one file, which is loaded when it is asked for", () => {
    const found = listSourceFiles()
      .filter((file) => file.endsWith(".ts") && !file.startsWith("plugins/metrics/"))
      .flatMap((file) => importsOf(file))
      .filter(
        ({ target, kind }) => kind !== "types" && /^plugins\/(?:metrics\/|compose-metrics)/u.test(target),
      );
    expect(found.filter(({ kind }) => kind === "value").map(({ file }) => file)).toEqual([
      "plugins/compose-metrics.ts",
    ]);
  });
});
