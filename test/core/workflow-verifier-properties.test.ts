import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { advanceRun } from "../../src/agents/coordination/workflow/advance-run.ts";
import { createRunSnapshot } from "../../src/agents/coordination/workflow/state/run-view.ts";
import { FORK, readBack, replayIn } from "../support/replay-play.ts";
import { verifiedWorkflows } from "../support/verified-workflows.ts";
import {
  CONTENT,
  PLAY_SETTINGS,
  playOut,
  type OnProgress,
  type PlayedRun,
} from "../support/workflow-arbitraries.ts";
import { checkLog } from "../support/workflow-plays.ts";
import { loadOpenWopSchemas } from "./openwop-schemas.ts";

const schemas = loadOpenWopSchemas();
const picks = fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 12 });
const RUNS = { numRuns: 400 };

type EventOf<T extends WorkflowEvent["type"]> = Extract<WorkflowEvent, { type: T }>;
type Config = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;

/** Rulings on a child before an event, by the log alone. */
interface ChildRulings {
  readonly verdicts: readonly EventOf<"agent.verified">["payload"][];
  /** The answer of people who were asked about it. */
  readonly actions: readonly unknown[];
}

function findRuledBefore(events: readonly WorkflowEvent[], childRunId: string): ChildRulings {
  const askedIds = new Set<string>();
  const verdicts: EventOf<"agent.verified">["payload"][] = [];
  const actions: unknown[] = [];
  let key = "";
  for (const event of events) {
    if (event.type === "agent.verified" && event.payload.target === childRunId) verdicts.push(event.payload);
    if (event.type === "node.suspended") key = event.payload.interruptId;
    if (event.type === "interrupt.requested" && event.payload.data["artifactId"] === childRunId)
      askedIds.add(key);
    if (event.type === "interrupt.resolved" && askedIds.has(event.payload.interruptId))
      actions.push((event.payload.resumeValue as { action?: unknown }).action);
  }
  return { verdicts, actions };
}

const isYes = (action: unknown): boolean => action === "accept" || action === "edit-accept";

function listHarvests(
  events: readonly WorkflowEvent[],
): { readonly event: EventOf<"core.workflowChain.event">; readonly at: number }[] {
  return events.flatMap((event, at) =>
    event.type === "core.workflowChain.event" && event.payload.phase === "output.harvested"
      ? [{ event, at }]
      : [],
  );
}

function gateOf({ graph }: PlayedRun, nodeId = ""): Config {
  return (graph.nodes.get(nodeId)?.node.config ?? {}) as Config;
}

describe("every workflow with gates, however verdicts, answers and time come in", () => {
  test("ends, with a log that keeps the rules of every log and of the official schemas", () => {
    fc.assert(
      fc.property(verifiedWorkflows, picks, (definition, order) => {
        const { events, run, graph } = playOut(definition, order);
        checkLog(events);
        expect(events.flatMap((event) => schemas.problemsOfWorkflow(event))).toEqual([]);
        expect(schemas.problemsOfSnapshot(createRunSnapshot(run, graph, []))).toEqual([]);
      }),
      RUNS,
    );
  });

  test("merges a child only after a pass that nobody doubts, or after people said yes, and never after a fail", () => {
    fc.assert(
      fc.property(verifiedWorkflows, picks, (definition, order) => {
        const played = playOut(definition, order);
        for (const { event, at } of listHarvests(played.events)) {
          const childRunId = event.payload.childRunId ?? "";
          const { verdicts, actions } = findRuledBefore(played.events.slice(0, at), childRunId);
          const last = verdicts.at(-1);
          expect(verdicts.length, "each child is ruled on once").toBeLessThanOrEqual(1);
          expect(last?.verdict).not.toBe("fail");
          const needsPeople =
            last?.verdict !== "pass" ||
            (last.confidence ?? 1) < PLAY_SETTINGS.confidenceFloor ||
            gateOf(played, event.nodeId)["outputAttestation"]?.["requireApproval"] === true;
          if (needsPeople) expect(actions.map(isYes)).toEqual([true]);
          else expect(actions.every(isYes)).toBe(true);
        }
      }),
      RUNS,
    );
  });

  test("merges each child once, and nothing that is not harvested", () => {
    fc.assert(
      fc.property(verifiedWorkflows, picks, (definition, order) => {
        const { events } = playOut(definition, order);
        const merged = listHarvests(events).map(({ event }) => event.payload.childRunId);
        expect(new Set(merged).size).toBe(merged.length);
        const keys = listHarvests(events).flatMap(({ event }) => event.payload.harvestedKeys ?? []);
        const changes = events.filter(({ type }) => type === "variable.changed");
        expect(changes).toHaveLength(keys.length);
        for (const change of changes) {
          const near = events.slice(Math.max(0, change.sequence - 1), change.sequence + 2);
          expect(listHarvests(near).map(({ event }) => event.nodeId)).toContain(change.nodeId);
        }
      }),
      RUNS,
    );
  });

  test("does not end as a success over work that was not accepted, unless people let it", () => {
    fc.assert(
      fc.property(verifiedWorkflows, picks, (definition, order) => {
        const { events, run, graph } = playOut(definition, order);
        if (run.phase.kind !== "completed") return;
        const open = [...run.reviews.values()].filter(
          ({ nodeId, verdict, isMerged, ruling }) =>
            nodeId === "dd" && verdict && verdict.verdict !== "pass" && !isMerged && ruling === undefined,
        );
        if (open.length === 0) return;
        const last = events.findLastIndex(({ type }) => type === "agent.verified");
        const released = events
          .slice(last)
          .some(
            (event) =>
              event.type === "interrupt.resolved" &&
              event.nodeId === "s" &&
              isYes((event.payload.resumeValue as { action?: unknown }).action),
          );
        expect(released).toBe(true);
        expect(createRunSnapshot(run, graph, [])["convergence"]).toMatchObject({ goalSatisfied: false });
      }),
      RUNS,
    );
  });

  test("chains each handoff by its table, with a run of its own for every turn of a worker", () => {
    fc.assert(
      fc.property(verifiedWorkflows, picks, (definition, order) => {
        const { events } = playOut(definition, order);
        const byId = new Map(events.map((event) => [event.eventId, event]));
        for (const event of events) {
          if (event.type !== "core.workflowChain.event") continue;
          const cause = event.causationId && byId.get(event.causationId);
          const before =
            cause && (cause.type === "core.workflowChain.event" ? cause.payload.phase : cause.type);
          expect(CAUSES[event.payload.phase]).toContain(before);
        }
        const created = events.flatMap((event) =>
          event.type === "node.dispatched" ? [event.payload.childRunId] : [],
        );
        expect(new Set(created).size).toBe(created.length);
      }),
      RUNS,
    );
  });

  test("holds nothing of what was checked in any event but where it is merged or shown to people", () => {
    fc.assert(
      fc.property(verifiedWorkflows, picks, (definition, order) => {
        for (const event of playOut(definition, order).events) {
          if (event.type === "variable.changed") continue;
          const { payload } = event;
          const body =
            event.type === "interrupt.requested"
              ? { ...payload, data: { ...event.payload.data, artifactData: 0 } }
              : payload;
          expect(JSON.stringify(body)).not.toContain(CONTENT);
        }
      }),
      RUNS,
    );
  });

  test("is replayed to the same log from its record, from every event on and in pages of any size", () => {
    const pages = fc.integer({ min: 1, max: 40 });
    fc.assert(
      fc.property(verifiedWorkflows, picks, pages, fc.nat(), (definition, order, page, at) => {
        const { graph, events } = playOut(definition, order);
        const recorded = readBack(events);
        for (const fromSeq of [0, at % (recorded.length + 1)]) {
          const replay = replayIn(recorded, { graph, settings: PLAY_SETTINGS, fromSeq, page });
          expect(replay.then).toEqual({ kind: "over" });
          expect(replay.events).toEqual(recorded.map((event) => ({ ...event, runId: FORK })));
        }
      }),
      RUNS,
    );
  });

  test("has at every moment the state that its log folds to, and plans the same again on that", () => {
    fc.assert(
      fc.property(verifiedWorkflows, picks, (definition, order) => {
        const onProgress: OnProgress = (planned, { graph, events, now }) => {
          const folded = foldWorkflow(JSON.parse(JSON.stringify(events)) as typeof events);
          expect(JSON.stringify(folded)).toBe(JSON.stringify(planned.run));
          if (!folded || planned.events.length >= 200) return;
          const again = advanceRun(folded, { graph, settings: PLAY_SETTINGS, now });
          expect(again.events).toEqual([]);
          expect(again.effects).toEqual(planned.effects);
          expect(again.wakeAtMs).toBe(planned.wakeAtMs);
        };
        playOut(definition, order, { onProgress });
      }),
      { numRuns: 150 },
    );
  });
});

const CAUSES: Readonly<Record<string, readonly string[]>> = {
  "dispatch.began": ["runOrchestrator.decided", "node.started"],
  "dispatch.succeeded": ["dispatch.began"],
  "dispatch.failed": ["dispatch.began"],
  "child.completed": ["dispatch.succeeded"],
  "child.failed": ["dispatch.succeeded"],
  "child.cancelled": ["dispatch.succeeded"],
  "output.harvested": ["child.completed"],
};
