/**
 * Owns: which metrics there are, and every value that a label of theirs can have. Does not own: how they are counted.
 *
 * M1 All series of a metric are there from the beginning, and no others come: so their number does not depend on what a
 * ledger holds, and nothing that a user names is a label.
 */

/** Every label with the values that it can have. */
type LabelValues = Readonly<Record<string, readonly string[]>>;

export type MetricDefinition =
  | { readonly kind: "counter" | "gauge"; readonly help: string; readonly labels: LabelValues }
  | {
      readonly kind: "histogram";
      readonly help: string;
      readonly labels: LabelValues;
      readonly buckets: readonly number[];
    };

const LANES = ["control", "data", "escalation"] as const;
const NO_LABELS = {} as const;

const WAIT_SECONDS = [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600];
const WORK_SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 1_800, 3_600, 14_400];
const ANSWER_SECONDS = [5, 15, 60, 300, 900, 3_600, 14_400, 86_400];
const APPEND_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];

/** All metrics, by name. */
export const METRICS = {
  coordination_opened_total: {
    kind: "counter",
    help: "Coordinations that were opened.",
    labels: { origin: ["observed", "plan"] },
  },
  coordination_ended_total: {
    kind: "counter",
    help: "Coordinations that ended.",
    labels: { status: ["success", "partial", "failed", "escalated", "cancelled"] },
  },
  coordination_deliveries_total: {
    kind: "counter",
    help: "Results of plans that their owners were told.",
    labels: { outcome: ["delivered", "not_delivered", "unknown"] },
  },
  coordination_attempts_total: {
    kind: "counter",
    help: "Attempts at steps that began.",
    labels: { lane: LANES },
  },
  coordination_retries_total: {
    kind: "counter",
    help: "Attempts that began after an earlier one of the same step.",
    labels: { cause: ["failed", "timed_out", "revision"] },
  },
  coordination_steps_total: {
    kind: "counter",
    help: "Steps that ended.",
    labels: { outcome: ["completed", "failed", "timed_out", "cancelled", "skipped"], lane: LANES },
  },
  coordination_step_wait_seconds: {
    kind: "histogram",
    help: "How long attempts waited for their lane since they could have begun.",
    labels: { lane: LANES },
    buckets: WAIT_SECONDS,
  },
  coordination_step_duration_seconds: {
    kind: "histogram",
    help: "How long the last attempts of steps took from their dispatch on.",
    labels: { outcome: ["completed", "failed", "timed_out", "cancelled"], lane: LANES },
    buckets: WORK_SECONDS,
  },
  coordination_fenced_outcomes_total: {
    kind: "counter",
    help: "Outcomes that were refused because another attempt, an end or another result came first.",
    labels: { because: ["stale_attempt", "step_ended", "other_target"] },
  },
  coordination_conflicts_total: {
    kind: "counter",
    help: "Conflicts that were ruled on, by what came of them for who asked.",
    labels: {
      strategy: ["owner_wins", "priority_wins", "merge_if_safe", "manual_review"],
      outcome: ["granted", "refused", "resolved"],
    },
  },
  coordination_held_results_total: {
    kind: "counter",
    help: "Results that were held.",
    labels: NO_LABELS,
  },
  coordination_held_results_ruled_total: {
    kind: "counter",
    help: "Held results that were ruled on.",
    labels: { ruling: ["verified", "approved", "replaced", "revised", "refused", "cancelled"] },
  },
  coordination_budget_stops_total: {
    kind: "counter",
    help: "What the operator's budget stopped.",
    labels: {
      limit: ["tokens", "costMicroUsd", "spawns", "depth"],
      stopped: ["spawn", "call", "run"],
    },
  },
  coordination_plan_stops_total: {
    kind: "counter",
    help: "Plans of which no further step begins.",
    labels: { because: ["fail_fast", "budget", "denied"] },
  },
  coordination_questions_total: {
    kind: "counter",
    help: "Questions that were asked.",
    labels: {
      cause: [
        "confidence",
        "conflict",
        "verifier",
        "retries_exhausted",
        "deadline",
        "agent",
        "budget",
        "mismatch",
        "merge",
      ],
    },
  },
  coordination_questions_closed_total: {
    kind: "counter",
    help: "Questions that were closed.",
    labels: {
      resolution: ["retried", "continued", "expired", "cancelled", "approved", "denied", "answered"],
    },
  },
  coordination_question_answer_seconds: {
    kind: "histogram",
    help: "How long those who were asked took for the answer that counted.",
    labels: { by: ["operator", "person", "plugin", "agent"] },
    buckets: ANSWER_SECONDS,
  },
  coordination_open_coordinations: {
    kind: "gauge",
    help: "Coordinations that run.",
    labels: NO_LABELS,
  },
  coordination_open_steps: {
    kind: "gauge",
    help: "Steps that have not ended, of coordinations that run.",
    labels: NO_LABELS,
  },
  coordination_open_questions: {
    kind: "gauge",
    help: "Questions that wait for an answer.",
    labels: NO_LABELS,
  },
  coordination_ledger_bytes: {
    kind: "gauge",
    help: "Bytes that the ledger takes on disk.",
    labels: NO_LABELS,
  },
  coordination_ledger_runs: {
    kind: "gauge",
    help: "Runs that the ledger holds.",
    labels: { kind: ["coordination", "workflow"] },
  },
  coordination_ledger_append_seconds: {
    kind: "histogram",
    help: "How long appends of this process took until they were on disk or failed.",
    labels: { outcome: ["written", "refused", "failed"] },
    buckets: APPEND_SECONDS,
  },
  coordination_metrics_behind_events: {
    kind: "gauge",
    help: "Events of the ledger that are not counted yet.",
    labels: NO_LABELS,
  },
  coordination_metrics_unreadable_total: {
    kind: "counter",
    help: "Events that could not be read or counted: run verify.",
    labels: NO_LABELS,
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;
type NameOf<K extends MetricDefinition["kind"]> = {
  [N in MetricName]: (typeof METRICS)[N]["kind"] extends K ? N : never;
}[MetricName];

export type CounterName = NameOf<"counter">;
export type GaugeName = NameOf<"gauge">;
export type HistogramName = NameOf<"histogram">;

/** A value for each label of a metric. */
export type LabelsOf<N extends MetricName> = {
  readonly [
    L in keyof (typeof METRICS)[N]["labels"]
  ]: (typeof METRICS)[N]["labels"][L] extends readonly (infer V extends string)[] ? V : never;
};

/** One more of something, or how long something took. */
export type Sample =
  | { [N in CounterName]: { readonly name: N; readonly labels: LabelsOf<N> } }[CounterName]
  | {
      [N in HistogramName]: { readonly name: N; readonly labels: LabelsOf<N>; readonly seconds: number };
    }[HistogramName];

/** Lists every combination of the values that a metric's labels can have; one empty set for a metric without labels. */
export function listLabelSets(labels: LabelValues): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (sets, [label, values]) => sets.flatMap((set) => values.map((value) => ({ ...set, [label]: value }))),
    [{}],
  );
}

/** Returns how many time series a scrape shows of a metric, including the buckets, sum and count of a histogram. */
export function countSeries(definition: MetricDefinition): number {
  const sets = listLabelSets(definition.labels).length;
  // Each bucket, the one without an end, the sum and the count.
  return definition.kind === "histogram" ? sets * (definition.buckets.length + 3) : sets;
}
