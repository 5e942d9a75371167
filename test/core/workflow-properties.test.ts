import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { advanceRun } from "../../src/agents/coordination/workflow/advance-run.ts";
import { createRunSnapshot } from "../../src/agents/coordination/workflow/state/run-view.ts";
import { loadOpenWopSchemas } from "./openwop-schemas.ts";
import {
  PLAY_SETTINGS,
  playOut,
  supervisedWorkflows,
  createWorkflows,
  type OnProgress,
  type PlayedRun,
} from "../support/workflow-arbitraries.ts";
import { checkLog } from "../support/workflow-plays.ts";

const schemas = loadOpenWopSchemas();
const anyWorkflow = fc.oneof(
  createWorkflows({ loops: false }),
  createWorkflows({ loops: true }),
  supervisedWorkflows,
);
const picks = fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 12 });
const RUNS = { numRuns: 250 };

/** The states that each node went through. */
function groupByNode({ events }: PlayedRun): Record<string, string[]> {
  const body: Record<string, string[]> = {};
  for (const { type, nodeId, payload } of events) {
    if (nodeId === undefined) continue;
    const { durationMs: _, previous: __, ...rest } = payload as Record<string, unknown>;
    (body[nodeId] ??= []).push(`${type} ${JSON.stringify(rest)}`);
  }
  return body;
}

describe("every workflow, however what it waits for comes in", () => {
  test("ends, and its log keeps the rules of every log and of the official schemas", () => {
    fc.assert(
      fc.property(anyWorkflow, picks, (definition, order) => {
        const { events, run, graph } = playOut(definition, order);
        checkLog(events);
        expect(events.flatMap((event) => schemas.problemsOfWorkflow(event))).toEqual([]);
        expect(schemas.problemsOfSnapshot(createRunSnapshot(run, graph, []))).toEqual([]);
      }),
      RUNS,
    );
  });

  test("has at every moment the state that its log folds to, and plans the same again on that", () => {
    fc.assert(
      fc.property(anyWorkflow, picks, (definition, order) => {
        const onProgress: OnProgress = (planned, { graph, events, now }) => {
          const folded = foldWorkflow(JSON.parse(JSON.stringify(events)) as typeof events);
          expect(JSON.stringify(folded)).toBe(JSON.stringify(planned.run));
          if (!folded || planned.events.length >= 200) return;
          const again = advanceRun(folded, { graph, settings: PLAY_SETTINGS, now });
          expect(again.events).toEqual([]);
          expect(again.memory).toEqual([]);
          expect(again.effects).toEqual(planned.effects);
          expect(again.wakeAtMs).toBe(planned.wakeAtMs);
        };
        playOut(definition, order, { onProgress });
      }),
      { numRuns: 100 },
    );
  });

  test("has the same log for the same order", () => {
    fc.assert(
      fc.property(anyWorkflow, picks, (definition, order) => {
        expect(playOut(definition, order).events).toEqual(playOut(definition, order).events);
      }),
      { numRuns: 100 },
    );
  });

  test("without loops or deadlines has the same end and the same story at every node for every order", () => {
    const timeless = createWorkflows({ loops: false }).map((definition) => ({
      ...definition,
      nodes: definition.nodes.map((each) => ({ ...each, config: { ...each.config, timeoutMs: undefined } })),
    }));
    fc.assert(
      fc.property(timeless, picks, picks, (definition, order, other) => {
        const [one, two] = [order, other].map((each) => playOut(definition, each, { patient: true }));
        expect(two?.run.phase.kind).toBe(one?.run.phase.kind);
        if (one?.run.phase.kind === "completed") expect(two && groupByNode(two)).toEqual(groupByNode(one));
      }),
      RUNS,
    );
  });

  test("without loops starts no node twice but to try it again", () => {
    fc.assert(
      fc.property(createWorkflows({ loops: false }), picks, (definition, order) => {
        const { events } = playOut(definition, order);
        const first = events.flatMap((event) =>
          event.type === "node.started" && event.payload.attempt === 0 ? [event.payload.nodeId] : [],
        );
        expect(new Set(first).size).toBe(first.length);
      }),
      RUNS,
    );
  });
});

describe("every supervised workflow", () => {
  test("chains each handoff, and dispatches nothing that was held and not agreed to", () => {
    fc.assert(
      fc.property(supervisedWorkflows, picks, (definition, order) => {
        const { events } = playOut(definition, order);
        const byId = new Map(events.map((event) => [event.eventId, event]));
        let isHeld = false;
        for (const event of events) {
          if (event.type === "core.workflowChain.confidence-escalated") isHeld = true;
          if (event.type === "runOrchestrator.decided") isHeld = false;
          if (event.type !== "core.workflowChain.event") continue;
          expect(isHeld).toBe(false);
          const cause = byId.get(event.causationId!);
          const before = cause?.type === "core.workflowChain.event" ? cause.payload.phase : cause?.type;
          expect(CAUSES[event.payload.phase]).toBe(before);
          expect(event.payload.childRunId !== undefined).toBe(
            !/began|dispatch.failed/.test(event.payload.phase),
          );
        }
      }),
      RUNS,
    );
  });

  test("decides once in each turn, and each low decision exactly as often as it was agreed to", () => {
    fc.assert(
      fc.property(supervisedWorkflows, picks, (definition, order) => {
        const { events } = playOut(definition, order);
        const filterOfType = (type: string) => events.filter((event) => event.type === type);
        const low = filterOfType("runOrchestrator.decided").filter(({ payload }) => {
          const { decision } = payload as { readonly decision: { readonly confidence?: number } };
          return (decision.confidence ?? 1) < 0.5;
        });
        const accepted = filterOfType("interrupt.resolved").filter(
          ({ nodeId, payload }) =>
            nodeId === "s" && (payload as { readonly action?: string }).action === "accept",
        );
        expect(low).toHaveLength(accepted.length);
        // A decision that people do not agree to is none.
        const doubted = filterOfType("core.workflowChain.confidence-escalated");
        const turns = filterOfType("node.started").filter(({ nodeId }) => nodeId === "s");
        expect(filterOfType("runOrchestrator.decided")).toHaveLength(
          turns.length - (doubted.length - accepted.length),
        );
      }),
      RUNS,
    );
  });
});

const CAUSES = {
  "dispatch.began": "runOrchestrator.decided",
  "dispatch.succeeded": "dispatch.began",
  "dispatch.failed": "dispatch.began",
  "child.completed": "dispatch.succeeded",
  "child.failed": "dispatch.succeeded",
  "child.cancelled": "dispatch.succeeded",
  "output.harvested": "child.completed",
} as const;
