/**
 * Owns: the test kit for plugins with coordination hooks: it asks the hooks as the coordination plugin does, by the same code,
 * without a gateway.
 *
 * ```ts
 * import { createHookHarness, sampleContest } from "openclaw-coordination/testing";
 *
 * const harness = createHookHarness();
 * registerCoordinationHooks(harness.api, hooks);
 * const ruling = await harness.arbitrate(sampleContest({ resource: "file:/repo/vendor/a.js" }));
 * harness.close();
 * ```
 *
 * Time stands still: `harness.clock.advance(5_000)` lets a hook be late.
 */
import type { AnswerRefusal } from "../../agents/coordination/contracts/escalation.ts";
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { LogFields } from "../../agents/coordination/ports/logger.ts";
import type { ChannelNotice, NoticeOutcome } from "../../agents/coordination/ports/human-channel.ts";
import type { CheckAnswer, VerifiedResult } from "../../agents/coordination/ports/verifier.ts";
import type { DecisionRuling } from "./ask-deciders.ts";
import { createFakeInstances } from "./fake-instances.ts";
import { createHookHost, type ContestRuling, type HookHost } from "./hook-host.ts";
import type { HookProblem } from "./hook-problem.ts";
import { forgetPlugin, markPluginLeft } from "./hook-registry.ts";
import type {
  CoordinationEvent,
  CoordinationHooksApi,
  HookContest,
  HookDecision,
  HookQuestion,
  HookResult,
} from "./hook-types.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";
import type { PluginAnswer } from "./notify-plugin.ts";
import { sampleContest, sampleDecision, sampleEvent, sampleQuestion, sampleResult } from "./sample-inputs.ts";

export {
  sampleContest,
  sampleDecision,
  sampleEvent,
  samplePlanDecision,
  sampleQuestion,
  sampleResult,
} from "./sample-inputs.ts";
export type {
  CheckAnswer,
  ContestRuling,
  DecisionRuling,
  HookProblem,
  ManualClock,
  NoticeOutcome,
  PluginAnswer,
};

/** Why the host ends an instance of a plugin. */
export type InstanceEnding = "reload" | "disable";

/** Hooks of a plugin under test, asked as the coordination plugin does. */
export interface HookHarness {
  /** For `registerCoordinationHooks`, as the newest instance of the plugin gets it. */
  readonly api: CoordinationHooksApi;
  readonly clock: ManualClock;
  /** Everything that went wrong with a hook, the newest last. */
  readonly problems: readonly HookProblem[];
  /** Lines of the plugin's own log. */
  readonly logged: readonly string[];
  /** The coordination plugin's side, for questions that the methods here do not ask. */
  readonly host: HookHost;
  arbitrate(contest?: HookContest): Promise<ContestRuling | undefined>;
  /**
   * Asks whether or not the result's agent is one that the hook verifies; `isVerified` tells. It ends after 2 minutes at the latest, as
   * all checks of a result do where the operator sets no other `gates.verifyMs`.
   */
  verify(result?: HookResult): Promise<CheckAnswer>;
  isVerified(agentId: string): boolean;
  decide(decision?: HookDecision): Promise<DecisionRuling | undefined>;
  escalate(question?: HookQuestion, options?: EscalateOptions): Promise<Escalated>;
  /** Resolves when the plugin has been told of them. */
  observe(...events: readonly CoordinationEvent[]): Promise<void>;
  /** Ends all instances as the host does, and gives out a new `api`. */
  end(ending: InstanceEnding): void;
  /** Another instance of the same plugin at the same time: the host loads each twice. */
  anotherApi(): CoordinationHooksApi;
  /** Takes everything back, so that the next test begins with nothing. */
  close(): void;
}

/** How a test notifies a plugin. */
export interface EscalateOptions {
  /** 0 for the first notice, 1 for the first reminder. */
  readonly notice?: number;
  /** Refuses answers; absent: each counts. */
  readonly take?: (answer: PluginAnswer) => AnswerRefusal | undefined;
}

/** How a notice ended in a test, and the answers to it. */
export interface Escalated {
  readonly outcome: NoticeOutcome;
  /** Answers until now; later ones are added. */
  readonly answers: readonly PluginAnswer[];
}

const PLUGIN_ID = "plugin-under-test";
const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
/** How long the checks of one result take together where nobody configures it. */
const VERIFY_MS = 120_000;

/** Creates a harness for the hooks of one plugin. @example `const harness = createHookHarness();` */
export function createHookHarness({
  pluginId = PLUGIN_ID,
}: { readonly pluginId?: string } = {}): HookHarness {
  const time = createManualClock(START_MS);
  const problems: HookProblem[] = [];
  const logged: string[] = [];
  const host = createHookHost({
    clock: time.clock,
    logger: silent,
    onProblem: (problem) => problems.push(problem),
  });
  const instances = createFakeInstances(pluginId, (message) => logged.push(message));
  return {
    get api() {
      return instances.newest();
    },
    anotherApi: instances.open,
    clock: { now: time.now, advance: time.advance },
    problems,
    logged,
    host,
    arbitrate: (contest = sampleContest()) => host.arbitrate(contest),
    verify: (result = sampleResult()) =>
      host.verify(
        {
          result: result as VerifiedResult,
          deadlineAtMs: (time.now() + VERIFY_MS) as EpochMs,
          signal: new AbortController().signal,
        },
        pluginId,
      ),
    isVerified: (agentId) => host.verifiersFor(agentId).includes(`plugin:${pluginId}`),
    decide: (decision = sampleDecision()) => host.decide(decision),
    escalate: (question = sampleQuestion(), options = {}) =>
      notifyUnderTest(host, pluginId, { question, options }),
    observe: async (...events) => {
      host.observe(events.length > 0 ? events : [sampleEvent()]);
      await host.observed();
    },
    end: (ending) => {
      instances.end(ending);
      markPluginLeft(pluginId, time.now());
    },
    close: () => {
      instances.end("disable");
      forgetPlugin(pluginId);
    },
  };
}

const silent = {
  debug: (_fields: LogFields, _message: string) => undefined,
  info: (_fields: LogFields, _message: string) => undefined,
  warn: (_fields: LogFields, _message: string) => undefined,
  error: (_fields: LogFields, _message: string) => undefined,
};

let notices = 0;

/** Notifies the plugin under test, and collects its answers. */
async function notifyUnderTest(
  host: HookHost,
  pluginId: string,
  { question, options }: { readonly question: HookQuestion; readonly options: EscalateOptions },
): Promise<Escalated> {
  const answers: PluginAnswer[] = [];
  const notice = {
    noticeId: `notice-${String((notices += 1))}`,
    question: question as ChannelNotice["question"],
    chatSession: question.ownerSession as ChannelNotice["chatSession"],
    notice: options.notice ?? 0,
    signal: new AbortController().signal,
    isOpen: () => Promise.resolve(true),
  };
  const outcome = await host.notify(notice, pluginId, (answer) => {
    answers.push(answer);
    return Promise.resolve(options.take?.(answer));
  });
  return { outcome, answers };
}
