/** Owns: whether the labels of a run are those that its log says there must be, and no others. */
import type { RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import { listEventLabels } from "../../ledger/event-labels.ts";
import type { EventRow } from "../../ledger/event-row.ts";
import type { RunHead } from "../../ledger/inspect/chain-check.ts";
import type { ProblemReporter } from "../../ledger/inspect/report.ts";

export interface LabelRow {
  readonly run_key: number;
  readonly kind: string;
  readonly value: string;
  readonly started_at_ms: number;
  readonly step_id: string;
}

type NamedLabel = Omit<LabelRow, "run_key">;

export interface LabelCheck {
  addEvent(row: EventRow): void;
  addLabel(label: LabelRow): void;
  end(): void;
}

/**
 * Creates the check that takes the events and then the stored labels of one run, and reports each label that the
 * events bring and the ledger lacks, and the other way round.
 */
export function createLabelCheck(
  { run_id: runId, kind: runKind }: RunHead & { readonly kind: string },
  report: ProblemReporter,
): LabelCheck {
  const expected = new Map<string, NamedLabel>();
  const stored = new Map<string, NamedLabel>();
  let startedAtMs = 0;
  const reportLabel = ({ kind, value }: NamedLabel, problem: string): void => {
    const label = `the label ${kind}${value === "" ? "" : ` ${value}`}`;
    report({ kind: "index_differs", message: `${label} ${problem}`, runId });
  };
  return {
    addEvent: (row) => {
      if (row.sequence === 0) startedAtMs = row.timestamp_ms;
      if (runKind !== "coordination") return;
      for (const label of listExpectedLabels(row, startedAtMs)) {
        // No coordination has a child's label; a step has none that its coordination has.
        const isKnown = label.kind !== "child" && expected.has(formatLabelKey({ ...label, step_id: "" }));
        if (label.step_id === "" || !isKnown) expected.set(formatLabelKey(label), label);
      }
    },
    addLabel: (label) => {
      stored.set(formatLabelKey(label), label);
    },
    end: () => {
      for (const [key, label] of expected)
        if (!stored.has(key)) reportLabel(label, "is missing or was changed");
      for (const [key, label] of stored) if (!expected.has(key)) reportLabel(label, "follows from no event");
    },
  };
}

function formatLabelKey({ kind, value, started_at_ms, step_id }: NamedLabel): string {
  return JSON.stringify([kind, value, started_at_ms, step_id]);
}

/** Lists the labels that an event says there must be. A payload that is damaged has none; its hash tells. */
function listExpectedLabels(row: EventRow, startedAtMs: number): NamedLabel[] {
  const nodeId = row.node_id ?? undefined;
  try {
    const event = { type: row.type, nodeId, payload: JSON.parse(row.payload) as unknown } as RunEvent;
    return listEventLabels(event).map(({ kind, value }) => ({
      kind,
      value,
      started_at_ms: startedAtMs,
      step_id: nodeId ?? "",
    }));
  } catch {
    return [];
  }
}
