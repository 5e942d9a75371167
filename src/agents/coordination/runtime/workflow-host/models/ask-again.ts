/**
 * Owns: whether a replay may go on with the recorded outcome of a model's call (RFC 0041): not where its own request is another
 * one, and not where the model, asked again, refuses what it answered or answers what it refused. Its second answer is
 * never used. A supervisor is not asked again, nor a live model unless the operator says so.
 */
import type { WorkflowDraft, WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import {
  draftDivergenceAtRefusal,
  draftDivergenceAtRequest,
  classifyEnvelope,
  findRecordedEnvelope,
} from "../../../workflow/envelope-kind.ts";
import { SUPERVISOR } from "../../../workflow/state/graph.ts";
import type { ModelAsk, WorkflowSettings } from "../../../workflow/node-contract/node-type.ts";
import { readEarlierModelOptions } from "../../../workflow/state/model-options.ts";
import { askModel, type AskDependencies, type ModelCall } from "./ask-model.ts";
import { MAX_TOKENS, hashModelRequest, chooseModelName } from "./model-request.ts";
import type { LoadedRun } from "../records/run-book.ts";

export interface AskAgainDependencies extends AskDependencies {
  readonly settings: Pick<WorkflowSettings, "replayReinvokesModels">;
}

export interface RecordedCall {
  readonly effect: ModelCall["effect"];
  /** The source's events from the place of the outcome on, at least up to the end of the node. */
  readonly recorded: readonly WorkflowEvent[];
  readonly sourceRunId: string;
}

/**
 * Returns the drafts that end a replay whose model request differs from the recorded one, or whose model, asked again,
 * refuses and did not, or the reverse; else none. Live models are asked only where that is set.
 */
export async function checkRecordedModelCall(
  dependencies: AskAgainDependencies,
  loadedRun: LoadedRun,
  call: RecordedCall,
  signal: AbortSignal,
): Promise<WorkflowDraft[]> {
  const { run, graph } = loadedRun;
  const { effect, recorded, sourceRunId } = call;
  const { nodeId } = effect;
  const compared = findRecordedRequest(dependencies, loadedRun, call);
  if (compared.kind === "other")
    return draftDivergenceAtRequest(run, { sourceRunId, nodeId, event: compared.event });
  const original = findRecordedEnvelope(nodeId, recorded);
  const isSupervisor = graph.nodes.get(nodeId)?.node.typeId === SUPERVISOR;
  const isAsked = effect.request.isPlayed === true || dependencies.settings.replayReinvokesModels === true;
  if (!original || isSupervisor || !isAsked) return [];
  const { tenant } = run.started.owner;
  const recordedEffect = { ...effect, request: compared.request };
  const replayed = classifyEnvelope(await askModel(dependencies, { effect: recordedEffect, tenant, signal }));
  return replayed === undefined || replayed === original.kind
    ? []
    : draftDivergenceAtRefusal(run, { sourceRunId, nodeId, original, replayed });
}

/** The request to a model that was recorded, or the event that names another one. */
type ComparedRequest =
  | { readonly kind: "same"; readonly request: ModelAsk }
  /** The event names the recorded request, which is not the one that would be made now. */
  | { readonly kind: "other"; readonly event: WorkflowEvent };

/** Returns the request as it was recorded: the one of now, or of earlier releases; else the event that differs. */
function findRecordedRequest(
  dependencies: AskAgainDependencies,
  loadedRun: LoadedRun,
  { effect, recorded }: RecordedCall,
): ComparedRequest {
  const { request, nodeId } = effect;
  // How the run stood is put before the model by the host, in words of its own; it follows from the log.
  if (request.turn) return { kind: "same", request };
  const recordedAsk = recorded.find(({ type, nodeId: at }) => at === nodeId && ENDS_OR_ASKS.has(type));
  if (recordedAsk?.type !== "coordination.model_asked") return { kind: "same", request };
  const { provider, model, requestDigest } = recordedAsk.payload;
  const isRecorded = (ask: ModelAsk): boolean => {
    // Another name of the host's model makes no other request; another model of the node does.
    const named = { provider, model: chooseModelName(ask, model) };
    return hashModelRequest(dependencies, ask, named)?.digest === requestDigest;
  };
  const possible = [request, createEarlierRequest(loadedRun, effect)].filter(isRecorded);
  // The digest has the provider that was asked, and not the one that the run names; earlier releases ignored that one.
  const isOfProvider = ({ provider: named = provider }: ModelAsk): boolean => named === provider;
  const same = possible.find(isOfProvider) ?? possible[0];
  return same ? { kind: "same", request: same } : { kind: "other", event: recordedAsk };
}

/** Creates the request of earlier releases: the node's configuration went before the run's options, which named no provider. */
function createEarlierRequest(
  { run, graph }: LoadedRun,
  { nodeId, request }: RecordedCall["effect"],
): ModelAsk {
  const {
    model: _model,
    temperature: _temperature,
    provider: _provider,
    routedModel: _routedModel,
    ...rest
  } = request;
  const config = graph.nodes.get(nodeId)?.node.config ?? {};
  return { ...rest, ...readEarlierModelOptions(run.started.configurable, config, MAX_TOKENS) };
}

/** Logs from before requests were told apart say nothing of them. */
const ENDS_OR_ASKS: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "coordination.model_asked",
  "node.completed",
  "node.failed",
  "node.retried",
  "node.cancelled",
]);
