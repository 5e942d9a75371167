/** Owns: that a fork has from its source exactly what had completed there before its place, by the logs and by the answers. */
import { DELIVERY_STEP_ID, type CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { listBroken } from "./list-broken.ts";
import type { FactOf, PayloadOf } from "./journal.ts";
import type { ForkPromise } from "./promises.ts";
import type { World } from "./world.ts";

export function checkForks(world: World): string[] {
  return [
    ...world.journal.filter("coordination.created").flatMap((created) => checkOrigin(world, created)),
    ...world.promises.forks.flatMap((promise) => checkAnswer(world, promise)),
    ...checkAnswersTogether(world.promises.forks),
  ];
}

type AcceptedFork = Exclude<NonNullable<ForkPromise["answer"]>, { readonly kind: "refused" }>;
type CarriedResult = NonNullable<PayloadOf<"step.admitted">["carried"]>;

/** Reads the results of the steps that had completed there: by an agent, or in the source of the source. */
function readResults(world: World, source: string, place: number): Map<string, CarriedResult> {
  const events = world.journal.eventsOf(source).filter(({ sequence }) => sequence < Math.max(place, 1));
  const results = new Map<string, CarriedResult>(readOlderResults(world, events));
  for (const { type, eventId, payload } of events) {
    const isCarried = type === "step.admitted" && payload.carried !== undefined;
    if ((type !== "step.completed" && !isCarried) || payload.stepId === DELIVERY_STEP_ID) continue;
    const { output, released } = type === "step.completed" ? payload : (payload.carried ?? {});
    results.set(payload.stepId, { eventId, ...(output && { output }), ...(released && { released }) });
  }
  return results;
}

/** A source that is a fork, and whose steps were not all admitted there, has the results of its own source all the same. */
function readOlderResults(world: World, events: readonly RunEvent[]): ReadonlyMap<string, CarriedResult> {
  const [created] = events;
  if (created?.type !== "coordination.created" || !created.payload.forkedFrom) return new Map();
  const { forkedFrom, plan } = created.payload;
  const admitted = events.filter(({ type }) => type === "step.admitted").length;
  if (admitted >= (plan?.steps ?? 0)) return new Map();
  return readResults(world, forkedFrom.coordinationId, forkedFrom.sequence);
}

function checkOrigin(world: World, { runId, payload }: FactOf<"coordination.created">): string[] {
  const { forkedFrom } = payload;
  const steps = listSteps(world, runId);
  if (!forkedFrom) {
    const strange = steps.filter(({ carried }) => carried);
    return strange.map(({ stepId }) => `D6: ${runId} is no fork, and ${stepId} is carried`);
  }
  const results = readResults(world, forkedFrom.coordinationId, forkedFrom.sequence);
  return steps.flatMap(({ stepId, carried }) =>
    JSON.stringify(sortKeys(carried)) === JSON.stringify(sortKeys(results.get(stepId)))
      ? []
      : [`D6: ${runId}/${stepId} carries ${JSON.stringify(carried)} of ${forkedFrom.coordinationId}`],
  );
}

function sortKeys(carried: CarriedResult | undefined): unknown {
  return carried && [carried.eventId, carried.output?.sha256, carried.released];
}

/** Lists the steps of the plan, without the one that tells the owner. */
function listSteps({ journal }: World, runId: string): PayloadOf<"step.admitted">[] {
  return journal
    .eventsOf(runId as CoordinationId)
    .flatMap((event) => (event.type === "step.admitted" && event.payload.planned ? [event.payload] : []));
}

/** A fork that was accepted is there, of that source and that place; a preview leaves nothing. */
function checkAnswer(world: World, promise: ForkPromise): string[] {
  const { coordinationId, source, from, isPreview, isLater, answer } = promise;
  if (!answer) return [];
  const isThere = isForkOf(world, promise);
  if (answer.kind === "refused")
    return isLater && isThere ? [`D2: ${coordinationId} again, from ${from}, was refused`] : [];
  const isRecorded = answer.kind !== "preview";
  const because = `a fork of ${source} from ${from} was ${answer.kind}`;
  return [
    ...listBroken({
      [`D2: ${because}, and ${coordinationId} was there`]: isLater && answer.kind !== "replay",
      [`D1: ${because}, and ${coordinationId} is none`]: isRecorded && !isThere,
      [`a preview of ${coordinationId} was accepted`]: isPreview && answer.kind === "accepted",
      [`${coordinationId} was to be made, and was only previewed`]: !isPreview && !isRecorded,
    }),
    ...checkNames(world, coordinationId, answer),
  ];
}

/** Whether the coordination of that id is the fork that was asked for. */
function isForkOf({ journal }: World, { coordinationId, source, from }: ForkPromise): boolean {
  const [created] = journal.eventsOf(coordinationId);
  const origin = created?.type === "coordination.created" ? created.payload.forkedFrom : undefined;
  return origin?.coordinationId === source && (from === undefined || origin.sequence === from);
}

/** The answer names what the fork carries, and the rest as what it does anew. */
function checkNames(world: World, coordinationId: string, { from, carried, anew }: AcceptedFork): string[] {
  const expected = readResults(world, from.coordinationId, from.sequence);
  const isWrong = carried.some((name) => !expected.has(name)) || anew.some((name) => expected.has(name));
  return isWrong ? [`the answer about ${coordinationId} carries ${carried.join(" ")}`] : [];
}

/** D2: a fork is accepted once; the same again is a replay of it. */
function checkAnswersTogether(forks: readonly ForkPromise[]): string[] {
  const accepted = forks.filter(({ answer }) => answer?.kind === "accepted");
  return [...Map.groupBy(accepted, ({ coordinationId }) => coordinationId)].flatMap(([name, list]) =>
    list.length > 1 ? [`D2: ${name} was accepted ${list.length} times`] : [],
  );
}
