/** Owns: the metrics in the gateway: where they are offered, what a request is answered, and that they count what is recorded there. */
import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it, vi } from "vitest";
import { registerMetricsRoute } from "../../src/plugins/openclaw/register-routes.ts";
import { makeRuntime } from "../../src/plugins/openclaw/runtime-access/make-runtime.ts";
import { findRuntime, replaceRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { takeMetricsRequest } from "../../src/plugins/openclaw/runtime-access/http-requests.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { openRun, spawnRequest } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { parsePrometheusText, readCounted } from "../support/prometheus-text.ts";
import { waitFor } from "../support/wait-for.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createFakeHost } from "./fake-host.ts";

afterEach(async () => {
  await findRuntime()?.close();
});

function listRoutes(metrics?: object): object[] {
  const registerHttpRoute = vi.fn();
  const pluginConfig = { coordination: { phase1: { enabled: true, ...(metrics && { metrics }) } } };
  registerMetricsRoute({ pluginConfig, registerHttpRoute } as unknown as OpenClawPluginApi);
  return registerHttpRoute.mock.calls.map(([route]) => route as object);
}

interface MetricsAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

async function ask(api: OpenClawPluginApi, method = "GET"): Promise<MetricsAnswer> {
  const answered: MetricsAnswer = { status: 0, headers: {}, body: "" };
  const response = {
    headersSent: false,
    writeHead: (status: number, headers: Record<string, string>) =>
      Object.assign(answered, { status, headers }),
    end: (body: string) => Object.assign(answered, { body }),
  };
  await takeMetricsRequest(api, method, response as unknown as ServerResponse);
  return answered;
}

describe("the route of the metrics", () => {
  it("is there where the operator wants it, for whom the gateway lets in", () => {
    expect(listRoutes()).toEqual([]);
    expect(listRoutes({ enabled: false })).toEqual([]);
    expect(listRoutes({ enabled: true })).toMatchObject([
      { path: "/coordination/metrics", match: "exact", auth: "gateway" },
    ]);
  });

  it("answers in Prometheus' text format, with what was recorded and how long that took", async () => {
    using folder = createTempFolder();
    const { api } = createFakeHost({ stateDir: folder.path, phase1: { metrics: { enabled: true } } });
    const runtime = makeRuntime(api);
    await replaceRuntime(runtime);
    const first = await ask(api);
    expect([first.status, first.headers["content-type"]]).toEqual([
      200,
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    const coordinator = await runtime.coordinator();
    expect(
      await coordinator.admitSpawn(spawnRequest({ call: "counted", trace: "trace-counted" })),
    ).toMatchObject({ kind: "admitted" });
    const counted = await waitFor(
      async () => {
        const read = readCounted(parsePrometheusText((await ask(api)).body));
        // Gauges are read behind an answer where reading them takes long.
        return read["coordination_open_steps"] === 1 ? read : undefined;
      },
      { what: "the open step", timeoutMs: 20_000, everyMs: 50 },
    );
    expect(counted).toMatchObject({
      'coordination_opened_total{origin="observed"}': 1,
      'coordination_attempts_total{lane="data"}': 1,
    });
    expect(counted['coordination_ledger_append_seconds_count{outcome="written"}']).toBeGreaterThan(0);
    expect(await ask(api, "HEAD")).toMatchObject({ status: 200, body: "" });
  });

  it("counts what is appended between the opening of the ledger and the first look of the metrics", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const url = new URL(schema.url);
    const { password } = url;
    url.password = "";
    const phase1 = { metrics: { enabled: true }, ledger: { url: url.href, password } };
    const { api } = createFakeHost({ stateDir: folder.path, phase1 });
    const store = await openTestPostgres(schema.url);
    await store.append(openRun("before").request);
    const runtime = makeRuntime(api);
    await replaceRuntime(runtime);
    await runtime.coordinator();
    await store.append(openRun("between").request);
    const counted = readCounted(parsePrometheusText((await ask(api)).body));
    expect(counted['coordination_opened_total{origin="observed"}']).toBe(1);
    await runtime.close();
    await store.close();
  });

  it("only reads", async () => {
    using folder = createTempFolder();
    const { api } = createFakeHost({ stateDir: folder.path, phase1: { metrics: { enabled: true } } });
    expect(await ask(api, "POST")).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
  });

  it("says to try again where the plugin stops or the metrics were switched off", async () => {
    using folder = createTempFolder();
    const { api, lines } = createFakeHost({ stateDir: folder.path });
    const runtime = makeRuntime(api);
    await replaceRuntime(runtime);
    expect(runtime.metrics).toBeUndefined();
    expect(await ask(api)).toMatchObject({ status: 503, headers: { "retry-after": "2" } });
    expect(lines.filter(({ level }) => level === "error")).toEqual([]);
  });
});
