/**
 * Owns: that code which could not be loaded once is loaded again by the next that needs it, lets the runtime close as usual, and
 * ends no gateway by a rejection that nobody handles.
 */
import { existsSync, mkdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, expect, it, vi } from "vitest";
import { registerObservation } from "../../src/plugins/openclaw/children/register-observation.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { registerUsage } from "../../src/plugins/openclaw/register-usage.ts";
import { takePageRequest } from "../../src/plugins/openclaw/runtime-access/http-requests.ts";
import { makeRuntime } from "../../src/plugins/openclaw/runtime-access/make-runtime.ts";
import { findRuntime, replaceRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createFakeHost } from "./fake-host.ts";

/** How many more times loading fails. */
const failures = vi.hoisted(() => ({ left: 0 }));

function failFirst(): void {
  failures.left -= 1;
  if (failures.left >= 0) throw new Error("the file cannot be read");
}

vi.mock("../../src/plugins/compose-metrics.ts", () => ({
  createMetricsHost: () => {
    failFirst();
    return {
      contentType: "text/plain",
      noteAppend: () => undefined,
      scrape: () => Promise.resolve("counted"),
      close: () => Promise.resolve(),
    };
  },
}));

vi.mock("../../src/plugins/compose-page.ts", () => ({
  createPageHost: () => {
    failFirst();
    return {
      handle: (_: IncomingMessage, response: ServerResponse) => response.end("the page"),
      end: () => Promise.resolve(),
    };
  },
}));

vi.mock("../../src/infra/acp/acp-runner.ts", () => ({ createAcpRunner: failFirst }));

afterEach(async () => {
  await findRuntime()?.close();
});

it("metrics that could not be loaded do not keep the runtime from closing", async () => {
  using folder = createTempFolder();
  const { api } = createFakeHost({ stateDir: folder.path, phase1: { metrics: { enabled: true } } });
  failures.left = Infinity;
  const runtime = makeRuntime(api);
  await expect(runtime.coordinator()).rejects.toThrow("the file cannot be read");
  await runtime.close();
  expect(runtime.closed).toBe(true);
});

it("metrics that could not be loaded are loaded again by the next that needs them", async () => {
  using folder = createTempFolder();
  const { api } = createFakeHost({ stateDir: folder.path, phase1: { metrics: { enabled: true } } });
  failures.left = 1;
  const runtime = makeRuntime(api);
  await expect(runtime.coordinator()).rejects.toThrow("the file cannot be read");
  await runtime.coordinator();
  expect(await runtime.metrics?.scrape()).toEqual({ text: "counted", contentType: "text/plain" });
  await runtime.close();
});

it("a page that could not be loaded is loaded again by the next request", async () => {
  using folder = createTempFolder();
  const { api } = createFakeHost({ stateDir: folder.path });
  failures.left = 1;
  await replaceRuntime(makeRuntime(api));
  const answers: unknown[] = [];
  const ask = async (): Promise<void> => {
    const response = {
      headersSent: false,
      writeHead: (status: number) => answers.push(status),
      end: (body: string) => answers.push(body),
    } as unknown as ServerResponse;
    const request = { url: "/coordination/page/" } as IncomingMessage;
    const refuseMethods = () => Promise.reject(new Error("this gateway has no methods"));
    await takePageRequest(api, response, (page) => page.handle(request, response, refuseMethods));
  };
  await ask();
  await ask();
  expect(answers).toEqual([503, expect.stringContaining("try again") as string, "the page"]);
});

it("a runner of agents that could not be loaded does not keep the ledger from closing", async () => {
  using folder = createTempFolder();
  const { api } = createFakeHost({ stateDir: folder.path });
  // Notes of agents that an earlier process started: the runner is loaded with the ledger.
  mkdirSync(folder.file("coordination/acp-agents"), { recursive: true });
  failures.left = Infinity;
  const runtime = makeRuntime(api);
  await runtime.coordinator();
  await runtime.close();
  // The last one that has the ledger open removes it.
  expect(existsSync(folder.file("coordination/ledger.sqlite"))).toBe(true);
  expect(existsSync(folder.file("coordination/ledger.sqlite-wal"))).toBe(false);
});

it.each([
  [registerObservation, "model_call_started", {}],
  [
    registerUsage,
    "before_message_write",
    { message: { role: "assistant", usage: { input: 1, output: 1 }, provider: "p", model: "m" } },
  ],
] as const)("handlers that cannot be loaded are logged: %o", async (register, name, event) => {
  const { api, lines } = createFakeHost({ stateDir: "/nowhere" });
  const hooks = new Map<string, (event: unknown, ctx: unknown) => unknown>();
  const on = (hook: string, handler: (event: unknown, ctx: unknown) => unknown) => hooks.set(hook, handler);
  const failLoading = () => Promise.reject(new Error("the file cannot be read"));
  register({ ...api, on } as unknown as OpenClawPluginApi, failLoading);
  const ctx = { sessionKey: "agent:main:subagent:1", runId: "run-1", trace: { traceId: "t".repeat(32) } };
  hooks.get("model_call_started")?.({ runId: "run-1" }, ctx);
  hooks.get(name)?.(event, ctx);
  await waitFor(() => lines.length > 0, { what: "the complaint" });
  const text = `coordination: ${name} failed: the file cannot be read`;
  expect(lines).toContainEqual({ level: "error", text });
});
