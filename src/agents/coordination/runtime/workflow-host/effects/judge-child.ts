/**
 * Owns: reading what a completed child produced, and asking those who rule on it. May be cut off at any line: whoever has not
 * answered is asked again.
 *
 * G1 who hangs, throws, is not there or may not rule has given no verdict, and that is the answer.
 */
import { formatCanonicalJson } from "../../../std/canonical-json.ts";
import { waitUnlessAborted, waitWithin } from "../../../std/wait-for.ts";
import { listVerifierChecks, type VerifierConfig } from "../../../contracts/workflows/child-gate-config.ts";
import {
  addMs,
  type AgentId,
  type CoordinationId,
  type EpochMs,
  type StepId,
} from "../../../contracts/ids.ts";
import { checkAnswerSchema, createNoVerdict, type Check } from "../../../contracts/verification.ts";
import type { CheckAnswer, Verifier, VerifiedResult } from "../../../ports/verifier.ts";
import type { EffectOutcome, JudgeEffect, Judgement } from "../../../workflow/node-contract/node-type.ts";
import { maskSensitiveVariables } from "../../../workflow/state/run-view.ts";
import {
  cleanNestedTexts,
  collectSensitiveTexts,
  maskTexts,
  type HiddenTexts,
} from "../../../workflow/state/sensitive-texts.ts";
import { readVariables, type Values } from "../../../workflow/state/values.ts";
import type { NewestRuns } from "../driving/drive-runs.ts";
import { shortenName } from "../models/model-request.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

export interface JudgeDependencies extends Pick<
  WorkflowHostDependencies,
  "clock" | "logger" | "sha256" | "peers" | "verifier"
> {
  readonly driver: NewestRuns;
}

/** The effect that has a completed child judged, and how its wait is stopped and traced. */
export interface JudgementRequest {
  readonly effect: JudgeEffect & { readonly nodeId: string };
  readonly signal: AbortSignal;
  readonly traceparent: string | undefined;
}

/**
 * Has a completed child judged, and returns the outcome with the judgements; `undefined` where `signal` has aborted,
 * so that nobody waits for it any more.
 */
export async function judgeChild(
  dependencies: JudgeDependencies,
  parent: LoadedRun,
  judging: JudgementRequest,
): Promise<EffectOutcome | undefined> {
  const judged = await collectJudgements(dependencies, parent, judging);
  return judging.signal.aborted ? undefined : judged;
}

/** Reads the child, asks the verifier if there is one that may rule, and attests the result if that is wanted. */
async function collectJudgements(
  dependencies: JudgeDependencies,
  parent: LoadedRun,
  judging: JudgementRequest,
): Promise<EffectOutcome> {
  const { effect } = judging;
  const child = await readJudgedChild(dependencies, parent, judging);
  if (!child) return { kind: "child_judged", isSelf: false, judgements: [] };
  const { variables, shown, sensitive, hidden, actors, actor } = child;
  const { verifier, isAttested, workerId } = effect;
  const isSelf = verifier !== undefined && [workerId, ...actors].includes(verifier.agentId);
  const mayAsk = verifier !== undefined && (!isSelf || verifier.allowSelfVerification);
  const isAsked = mayAsk && effect.isPlayed !== true;
  const calls: JudgeModelCall[] = [];
  const asking = { ...judging, variables, sensitive, hidden, calls };
  const judgements = isAsked ? await askVerifier(dependencies, parent, { ...asking, verifier }) : [];
  return {
    kind: "child_judged",
    variables,
    sensitive,
    isSelf,
    judgements,
    ...(isAttested && {
      attestation: { checksum: dependencies.sha256(formatCanonicalJson(shown)), algorithm: "sha256" },
    }),
    ...(actor && { actor }),
    ...(calls.length > 0 && { calls: [...calls] }),
  };
}

/** An answered call of the critic's model, with the model's name and its usage. */
type JudgeModelCall = NonNullable<Extract<EffectOutcome, { kind: "child_judged" }>["calls"]>[number];

/** The results of a child run that is judged, and who did its work. */
interface JudgedChild {
  readonly variables: Values;
  /** The variables as the child's snapshot shows them. */
  readonly shown: Values;
  readonly sensitive: readonly string[];
  /** Sensitive texts of the child and of the run that started it: its other variables may have them too. */
  readonly hidden: HiddenTexts;
  /** Agents that may have done the work. */
  readonly actors: readonly string[];
  readonly actor?: { readonly agentId: string; readonly confidence?: number };
}

/** Reads what a child produced, here or on a peer; `undefined` where it cannot be read. */
async function readJudgedChild(
  dependencies: JudgeDependencies,
  parent: LoadedRun,
  judging: JudgementRequest,
): Promise<JudgedChild | undefined> {
  const { effect, signal } = judging;
  if (effect.peerUrl !== undefined) {
    const ended = await (await dependencies.peers()).awaitEnd(effect.peerUrl, effect.childRunId, signal);
    if (ended.kind !== "ended") return undefined;
    const { variables } = ended;
    return {
      variables,
      shown: variables,
      sensitive: [],
      hidden: collectSensitiveTexts([parent]),
      actors: [],
    };
  }
  const child = await readChild(dependencies, parent.run, effect.childRunId);
  if (!child) return undefined;
  const { run, graph } = child;
  const variables = readVariables(run, graph);
  return {
    variables,
    shown: maskSensitiveVariables(variables, graph),
    sensitive: graph.variables.filter(({ sensitive }) => sensitive).map(({ name }) => name),
    hidden: collectSensitiveTexts([child, parent]),
    actors: await listActors(dependencies, child),
    ...(run.actor && { actor: run.actor }),
  };
}

/** Lists the agents that may have done the work of a run, or of a run that its nodes ever started. */
async function listActors(dependencies: JudgeDependencies, { run, graph }: LoadedRun): Promise<string[]> {
  const named = [...graph.nodes.values()].map(
    ({ node: { agent, config } }) => agent?.agentId ?? config["agentId"],
  );
  const actors = [...named, run.orchestrator.agentId].filter((agentId) => typeof agentId === "string");
  for (const { childRunIds = [] } of run.nodes.values())
    for (const childRunId of childRunIds) {
      const child = await readChild(dependencies, run, childRunId);
      if (child) actors.push(...(await listActors(dependencies, child)));
    }
  return actors;
}

/** Reads a child run of this host. A run of another tenant is not read, whatever the log names. */
async function readChild(
  { driver }: JudgeDependencies,
  parent: LoadedRun["run"],
  childRunId: string,
): Promise<LoadedRun | undefined> {
  const child = await driver.newest(childRunId as CoordinationId);
  return child?.run.started.owner.tenant === parent.started.owner.tenant ? child : undefined;
}

/** A judgement that the verifier is asked for, with the child's results. */
type VerifierRequest = JudgementRequest & {
  readonly verifier: VerifierConfig;
  readonly variables: Values;
  readonly sensitive: readonly string[];
  readonly hidden: HiddenTexts;
  /** Answers of the critic's model so far. */
  readonly calls: JudgeModelCall[];
};

/** Asks the verifier for all of its checks at once. A check without a verdict counts as `none`, and is logged. */
async function askVerifier(
  dependencies: JudgeDependencies,
  { run }: LoadedRun,
  asking: VerifierRequest,
): Promise<readonly Judgement[]> {
  const { effect, verifier, signal, traceparent, calls } = asking;
  const checks = listVerifierChecks(verifier);
  if (checks.length === 0) return [];
  const deadlineAtMs = addMs(dependencies.clock.now(), verifier.timeoutMs);
  const { model, agentId } = verifier;
  const verifying = dependencies.verifier({
    ...(model !== undefined && { model }),
    ...(traceparent !== undefined && { traceparent }),
    onAnswered: ({ model: named, provider, usage }) => {
      calls.push({ model: shortenName(named), usage: { ...usage, provider: shortenName(provider) } });
    },
  });
  const about = { runId: run.runId, nodeId: effect.nodeId, target: effect.childRunId };
  return Promise.all(
    checks.map(async ([key, check]) => {
      // Whether an agent may rule on its own work is the workflow's to say, and was decided before.
      const request = { key, check, allowSelf: true, deadlineAtMs, signal };
      const answer = await awaitCheckAnswer(dependencies, verifying, {
        ...request,
        result: createVerifiedResult(run.runId, effect, selectShownValues(check, asking)),
      });
      if (answer.kind === "verdict") return createJudgement(answer);
      const { because, message } = answer;
      dependencies.logger.warn(
        { ...about, check: key, agentId, because },
        `no verdict on a child run: ${message}`,
      );
      return { kind: "none", because } as const;
    }),
  );
}

/** Selects the variables that a check may see: a model sees no sensitive ones, and no copies of them in others. */
function selectShownValues({ kind }: Check, { variables, sensitive, hidden }: VerifierRequest): Values {
  if (kind !== "model") return variables;
  const shown = Object.fromEntries(Object.entries(variables).filter(([name]) => !sensitive.includes(name)));
  return cleanNestedTexts(shown, (text) => maskTexts(text, hidden)) as Values;
}

function createJudgement({ verdict, criteria, confidence }: CheckAnswer & { kind: "verdict" }): Judgement {
  return { kind: "verdict", verdict, criteria, ...(confidence !== undefined && { confidence }) };
}

/** Creates the result that a verifier gets, which is a copy of its own. */
function createVerifiedResult(
  runId: CoordinationId,
  effect: VerifierRequest["effect"],
  variables: Values,
): VerifiedResult {
  const text = JSON.stringify(variables);
  return {
    coordinationId: runId,
    stepId: effect.nodeId as StepId,
    attempt: effect.attempt,
    target: effect.target,
    agentId: effect.workerId as AgentId,
    text,
    outputs: JSON.parse(text) as Values,
  };
}

interface KeyedCheck {
  readonly key: string;
  readonly check: Check;
  readonly result: VerifiedResult;
  readonly allowSelf: boolean;
  readonly deadlineAtMs: EpochMs;
  readonly signal: AbortSignal;
}

/** After the time in which it should have answered by itself. */
const GRACE_MS = 1_000;

/**
 * Resolves with the verifier's answer; with no verdict where it is late, fails or is of another form. A verifier
 * answers in time by itself; one that does not is not waited for.
 */
async function awaitCheckAnswer(
  { clock }: JudgeDependencies,
  verifier: Promise<Verifier>,
  request: KeyedCheck,
): Promise<CheckAnswer> {
  const checking = verifier
    .then((verify) => verify.check(request))
    .catch(() => createNoVerdict("failed", "it could not be asked"));
  const stopped = createNoVerdict("unavailable", "nobody waits for it any more");
  const answer = await waitWithin(
    clock,
    request.deadlineAtMs + GRACE_MS - clock.now(),
    waitUnlessAborted(checking, request.signal, stopped),
    createNoVerdict("timed_out", "no answer"),
  );
  const read = checkAnswerSchema.safeParse(answer);
  return read.success
    ? (read.data as CheckAnswer)
    : createNoVerdict("malformed", "the answer is of another form");
}
