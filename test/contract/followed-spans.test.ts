/** Owns: following the runs of a ledger for their spans: damage to one run stops no other, and a fork is known as one. */
import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { computeSpanId, type Span } from "../../src/agents/coordination/telemetry/span.ts";
import { createFollowedSpans } from "../../src/plugins/telemetry/followed-spans.ts";
import { recordLedger, RESEARCH } from "../cli/recorded-ledger.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import {
  branchOf,
  COMPLETED,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";

const hashText = (text: string): string => hash("sha256", text);
let folder: TempFolder;

beforeAll(() => {
  folder = createTempFolder();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

/** Returns a new ledger that has these coordinations, one opened after the other on one trace, and these workflow runs. */
async function recordRuns(
  coordinations: readonly string[],
  runs: readonly (readonly [WorkflowAuthor, readonly WorkflowDraft[]])[] = [],
): Promise<string> {
  const file = folder.file(`${hashText(expect.getState().currentTestName ?? "").slice(0, 16)}.sqlite`);
  await recordLedger(
    file,
    coordinations.map((id) => ({ ...RESEARCH, id })),
  );
  const ledger = await openTestLedger(file);
  for (const [author, drafts] of runs) await ledger.workflows.append(author.append(drafts));
  await ledger.close();
  return file;
}

interface ProjectedSpans {
  /** By the id of their run. */
  readonly roots: ReadonlyMap<unknown, Span>;
  readonly spans: readonly Span[];
  readonly damaged: readonly string[];
}

/** Projects all of a ledger, as an export does. */
async function projectLedger(file: string): Promise<ProjectedSpans> {
  const ledger = await openTestLedger(file, { mode: "read" });
  const damaged: string[] = [];
  const followed = createFollowedSpans(hashText, (runId) => void damaged.push(runId));
  const { items } = await ledger.readArrivals({ after: 0, limit: 10_000 });
  const spans = await followed.project(ledger, items);
  await ledger.close();
  const roots = spans.flatMap((span) => {
    const runId = span.attributes["coordination.id"] ?? span.attributes["coordination.run_id"];
    return runId === undefined ? [] : [[runId, span] as const];
  });
  return { roots: new Map(roots), spans, damaged };
}

const rootIdOf = (runId: CoordinationId): string => computeSpanId(runId, "root", hashText);

function createChildStarted(parentRunId: CoordinationId): WorkflowDraft {
  const started = createRunStarted();
  if (started.type !== "run.started") return started;
  return {
    ...started,
    payload: {
      ...started.payload,
      parent: { runId: parentRunId, hostId: "here", cause: "core.subWorkflow" },
    },
  };
}

describe("the spans of a ledger with damage", () => {
  it("are all there where only the summary of a run is damaged, which they are not made of", async () => {
    const file = await recordRuns(["co-00000001", "co-00000002"]);
    const sound = await projectLedger(file);
    forge(file, "update run set summary = '{' where run_id = 'co-00000001'");
    const projected = await projectLedger(file);
    expect(projected.damaged).toEqual([]);
    expect(projected.spans).toEqual(sound.spans);
  });

  it("lack the link where the coordination before is damaged, and nothing else", async () => {
    const file = await recordRuns(["co-00000001", "co-00000002"]);
    const sound = await projectLedger(file);
    expect(sound.roots.get("co-00000002")?.links).toHaveLength(1);
    forge(
      file,
      `update event set payload = '{' where sequence = 0
        and run_key = (select run_key from run where run_id = 'co-00000001')`,
    );
    const projected = await projectLedger(file);
    expect(projected.damaged).toEqual(["co-00000001"]);
    expect(projected.roots.get("co-00000002")).toEqual({ ...sound.roots.get("co-00000002"), links: [] });
  });

  it("are those of a run of its own where the run that started it is damaged", async () => {
    const around = createWorkflowAuthor("around");
    const child = createWorkflowAuthor("child");
    const file = await recordRuns(
      [],
      [
        [around, [createRunStarted(), COMPLETED]],
        [child, [createChildStarted(around.runId), COMPLETED]],
      ],
    );
    const sound = await projectLedger(file);
    expect(sound.roots.get(child.runId)?.parentSpanId).toBe(rootIdOf(around.runId));
    forge(
      file,
      `update event set payload = '{' where sequence = 0
        and run_key = (select run_key from run where run_id = '${around.runId}')`,
    );
    const projected = await projectLedger(file);
    expect(projected.damaged).toEqual([around.runId]);
    expect(projected.roots.get(child.runId)).not.toHaveProperty("parentSpanId");
  });

  it("leave out a fork whose origin cannot be read, and no other run", async () => {
    const source = createWorkflowAuthor("source");
    const fork = createWorkflowAuthor("fork", branchOf(source.runId, "fork", 1));
    const file = await recordRuns(
      [],
      [
        [source, [createRunStarted(), COMPLETED]],
        [fork, [createRunStarted(), COMPLETED]],
      ],
    );
    forge(file, `update run set origin = '{}' where run_id = '${fork.runId}'`);
    const projected = await projectLedger(file);
    expect(projected.damaged).toEqual([fork.runId]);
    expect([...projected.roots.keys()]).toEqual([source.runId]);
  });
});

describe("the spans of a fork in a ledger", () => {
  it("leave out what its source did, and link the source in place of the run that started it", async () => {
    const aroundId = nameWorkflowRun("around");
    const source = createWorkflowAuthor("source");
    const fork = createWorkflowAuthor("fork", branchOf(source.runId, "fork", 3));
    const copies: WorkflowDraft[] = [
      createChildStarted(aroundId),
      createNodeStarted("first"),
      { type: "node.completed", nodeId: "first", payload: { nodeId: "first", outputs: {} } },
    ];
    const file = await recordRuns(
      [],
      [
        [createWorkflowAuthor("around"), [createRunStarted()]],
        [source, [...copies, COMPLETED]],
        [fork, [...copies, createNodeStarted("second"), COMPLETED]],
      ],
    );
    const { roots, spans } = await projectLedger(file);
    expect(spans.filter(({ attributes }) => attributes["coordination.node_id"] === "first")).toHaveLength(1);
    const root = roots.get(fork.runId);
    expect(root).not.toHaveProperty("parentSpanId");
    expect(root?.links.map(({ spanId }) => spanId)).toEqual([rootIdOf(source.runId)]);
    expect(root?.traceId).toBe(roots.get(source.runId)?.traceId);
  });
});
