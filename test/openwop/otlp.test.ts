/** Owns: the spans of `serve --otlp`, over kill -9. */
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createWorkflowSpans } from "../../src/agents/coordination/telemetry/project-workflow.ts";
import { importsOf, listSourceFiles } from "../architecture/read-imports.ts";
import { listUnique, startOtlpCollector } from "../support/otlp-collector.ts";
import { startServe, type ServeProcess } from "../support/serve-process.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createServing } from "./create-serving.ts";

const EXPORTING = /^(?:plugins\/(?:telemetry\/|compose-telemetry)|infra\/otlp\/)/u;
const RUNS = 30;
/** More than the 2 s that a request is waited for, and far less than the 30 s that it may take. */
const ENDING_MS_MAX = 15_000;
const DEFINITION = createWorkflow("pair", {
  nodes: [createNode("first"), createNode("second")],
  edges: chain("first>second"),
});
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

/** Makes every import of the exporter fail as it does where a file of the package is not there. */
const HIDE_EXPORTER = `
import { registerHooks } from "node:module";
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    if (!found.url.includes("/compose-telemetry.")) return found;
    throw Object.assign(new Error("Cannot find module " + found.url), { code: "ERR_MODULE_NOT_FOUND" });
  },
});
`;

/** SQLite removes the file of a ledger's newest writes where the last who has the ledger open closes it. */
const SERVE_WITHOUT_EXPORTER = `
const { existsSync } = await import("node:fs");
const { startServedOpenWop } = await import("./src/plugins/serve-openwop.ts");
const serving = { ...JSON.parse(process.argv[1]), log: () => undefined };
const code = await startServedOpenWop(serving).then(() => "served", (error) => error.code);
console.log(JSON.stringify({ code, isOpen: existsSync(serving.ledgerPath + "-wal") }));
`;

async function createRuns(serve: ServeProcess, count: number): Promise<string[]> {
  const runIds: string[] = [];
  for (let run = 0; run < count; run += 1) {
    const { status, body } = await serve.ask("POST", "/v1/runs", {
      body: { workflowId: "pair", inputs: {} },
      headers: { traceparent: TRACEPARENT },
    });
    expect(status).toBe(201);
    runIds.push(String(body["runId"]));
  }
  return runIds;
}

/** The ids of all spans of these runs, as the ledger has them. */
async function listSpanIds(file: string, runIds: readonly string[]): Promise<string[]> {
  const ledger = await openTestLedger(file);
  const ids: string[] = [];
  for (const runId of runIds) {
    const projection = createWorkflowSpans((text) => hash("sha256", text));
    const events = await ledger.workflows.read(runId as CoordinationId, { from: 0, limit: 1_000 });
    ids.push(...events.flatMap((event) => projection.take(event)).map(({ spanId }) => spanId));
  }
  await ledger.close();
  return ids;
}

describe("serve --otlp", () => {
  it("exports the tree of every run, whole and once after de-duplication, over kill -9", async () => {
    using folder = createTempFolder();
    await using collector = await startOtlpCollector();
    const ledger = folder.file("runs.sqlite");
    const options = {
      ledger,
      folder: folder.path,
      definitions: [DEFINITION],
      args: ["--otlp", collector.url],
    };
    const first = await startServe(options);
    const before = await createRuns(first, RUNS);
    await waitFor(() => collector.requests > 0, { what: "a first request", timeoutMs: 30_000 });
    const after = createRuns(first, RUNS).catch(() => [] as string[]);
    await first.end("SIGKILL");
    await after;
    const second = await startServe(options);
    const runIds = [...before, ...(await createRuns(second, RUNS))];
    const rootsOf = () => new Set(collector.spans.map(({ attributes }) => attributes["coordination.run_id"]));
    await waitFor(() => runIds.every((runId) => rootsOf().has(runId)), {
      what: "the root of every run",
      timeoutMs: 60_000,
    });
    await second.end("SIGTERM");
    const expected = await listSpanIds(ledger, runIds);
    const spans = listUnique(collector.spans);
    const exportedIds = new Set(spans.map(({ spanId }) => spanId));
    expect(expected).toHaveLength(3 * 2 * RUNS);
    expect(expected.filter((id) => !exportedIds.has(id))).toEqual([]);
    expect(collector.problems).toEqual([]);
    for (const { traceId, parentSpanId } of spans) {
      expect(traceId).toBe(TRACE);
      expect(parentSpanId === "00f067aa0ba902b7" || exportedIds.has(parentSpanId)).toBe(true);
    }
  });

  it("ends within seconds where the collector takes a request and never answers", async () => {
    using folder = createTempFolder();
    await using collector = await startOtlpCollector();
    collector.answer = "hang";
    const serve = await startServe({
      ledger: folder.file("runs.sqlite"),
      folder: folder.path,
      definitions: [DEFINITION],
      args: ["--otlp", collector.url],
    });
    await waitFor(
      async () => {
        await createRuns(serve, 1);
        return collector.requests > 0;
      },
      { what: "a request", timeoutMs: 30_000 },
    );
    const beganMs = performance.now();
    await serve.end("SIGTERM");
    expect(performance.now() - beganMs).toBeLessThan(ENDING_MS_MAX);
    expect(serve.process.exitCode).toBe(0);
  });

  it("closes its ledger where the exporter cannot start", () => {
    using folder = createTempFolder();
    const hide = `data:text/javascript,${encodeURIComponent(HIDE_EXPORTER)}`;
    const serving = JSON.stringify(createServing(folder.file("runs.sqlite"), { otlp: "" }));
    const { stdout } = spawnSync(
      process.execPath,
      ["--import", hide, "--input-type=module", "--eval", SERVE_WITHOUT_EXPORTER, serving],
      { cwd: new URL("../../", import.meta.url), encoding: "utf8" },
    );
    expect(JSON.parse(stdout)).toEqual({ code: "ERR_MODULE_NOT_FOUND", isOpen: false });
  });

  it("refuses what is no address", async () => {
    using folder = createTempFolder();
    const options = { ledger: folder.file("runs.sqlite"), folder: folder.path, definitions: [DEFINITION] };
    await expect(startServe({ ...options, args: ["--otlp", "collector:4318"] })).rejects.toThrow(
      "--otlp: expected an address that begins with http:// or https://",
    );
  });

  it("is loaded where somebody wants it, and reached by value from one file", () => {
    const found = listSourceFiles()
      .filter((file) => file.endsWith(".ts") && !/^(?:plugins\/telemetry|infra\/otlp)\//u.test(file))
      .flatMap((file) => importsOf(file))
      .filter(({ target, kind }) => kind === "value" && EXPORTING.test(target));
    expect(new Set(found.map(({ file }) => file))).toEqual(new Set(["plugins/compose-telemetry.ts"]));
  });
});
