/** Owns: the options of a branch: how its overlay is put over those of its source; and what forks are refused for them. */
import { findPayloadProblem, type WorkflowPayloads } from "../../../contracts/workflows/workflow-events.ts";
import type { WorkflowEntry } from "../../../ports/workflow-store.ts";
import { isRecord } from "../../../std/is-record.ts";
import { needsPlay, NOT_PLAYED } from "../../../workflow/node-contract/conformance-parts.ts";
import { completeOverlay } from "../../../workflow/state/model-options.ts";
import type { Values } from "../../../workflow/state/values.ts";
import { findOptionRefusal, findUnkeptOptionRefusal } from "../driving/create-run.ts";
import { refuse } from "../records/refuse.ts";
import type { ForkRun, HostRefusal } from "../records/workflow-host.ts";
import type { HostCollaborators } from "./hosting.ts";

/** The payload of a run's first event. */
type RunStartedPayload = WorkflowPayloads["run.started"];

interface OptionsOfFork {
  readonly request: ForkRun;
  readonly place: { readonly source: WorkflowEntry };
}

/**
 * Returns the fork's request with an overlay in which options of a model count, whichever spelling the source has of
 * them; the request itself where it overlays no options. The overlay is recorded, so that the fork's log folds as the
 * logs of earlier releases do: name by name.
 */
export function completeForkOverlay(
  request: ForkRun,
  source: WorkflowEntry,
  started: RunStartedPayload,
): ForkRun {
  const { overlay } = request;
  if (!overlay?.configurable) return request;
  const configurable = completeOverlay(readSourceOptions(source, started), overlay.configurable);
  return { ...request, overlay: { ...overlay, configurable } };
}

function readSourceOptions({ origin }: WorkflowEntry, { configurable }: RunStartedPayload) {
  return { ...configurable, ...origin?.configurable };
}

/** Omits the options that are null, and those of `ai`. */
function omitNullOptions(options: Values): Values {
  const stated = Object.entries(options).filter(([, value]) => value !== null);
  return Object.fromEntries(
    stated.map(([name, value]) => [name, name === "ai" && isRecord(value) ? omitNullOptions(value) : value]),
  );
}

/** Returns the refusal of a fork of a run that this host cannot play, or whose options are refused; else `undefined`. */
export async function findForkedStartRefusal(
  forking: Pick<HostCollaborators, "book" | "settings" | "contract">,
  fork: OptionsOfFork,
  started: RunStartedPayload,
): Promise<HostRefusal | undefined> {
  return (
    (await findPlayedForkRefusal(forking, started.definition)) ??
    (await findBrokenOptionsRefusal(forking, fork, started))
  );
}

/**
 * Returns the refusal of a branch whose overlay the source's caller could not have asked for either, or whose options
 * would be ignored; `undefined` where they fit, and for a replay.
 */
async function findBrokenOptionsRefusal(
  forking: Pick<HostCollaborators, "book" | "settings" | "contract">,
  { request: { mode, overlay = {} }, place }: OptionsOfFork,
  started: RunStartedPayload,
): Promise<HostRefusal | undefined> {
  if (mode === "replay") return undefined;
  const { definition, inputs } = started;
  const configurable = { ...readSourceOptions(place.source, started), ...overlay.configurable };
  if (Object.keys(overlay).length === 0) return findUnkeptOptionRefusal(configurable);
  const workflow = await forking.book.runnable(definition);
  const asWritten = await findOptionRefusal(forking, workflow, { configurable, inputs });
  // A schema of the workflow takes null in an option of its own only where it says so.
  const refusal =
    asWritten &&
    (await findOptionRefusal(forking, workflow, { configurable: omitNullOptions(configurable), inputs }));
  if (refusal) return refusal;
  // A branch in the middle of a run records its own options only, beside those of its source.
  const recorded = { ...started, tags: undefined, metadata: undefined, ...overlay, configurable };
  return findUnreadableStartRefusal(recorded);
}

/**
 * Returns the refusal of a fork whose first event would be too large to be read again, or of another form; `undefined`
 * where it fits.
 */
export function findUnreadableStartRefusal(payload: object): HostRefusal | undefined {
  const problem = findPayloadProblem("run.started", payload);
  return problem === undefined
    ? undefined
    : refuse("validation_error", `the request cannot be recorded: ${problem}`);
}

/**
 * Returns the refusal of a fork of a played run on a host without the conformance play; `undefined` for any other. The
 * fork derives what its source did.
 */
async function findPlayedForkRefusal(
  { book, settings }: Pick<HostCollaborators, "book" | "settings">,
  definition: string,
): Promise<HostRefusal | undefined> {
  if (settings.play || !needsPlay((await book.runnable(definition)).graph)) return undefined;
  return refuse(
    NOT_PLAYED,
    "the run was played for the protocol's conformance suite: fork it on a host that is served with --test-seams",
  );
}
