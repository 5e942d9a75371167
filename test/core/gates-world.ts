/** Owns: coordinators over fakes whose results are gated: verifiers and channels that do as the test says, plans and spawns that they rule on. */
import type { EventId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type {
  EscalationsConfig,
  GatesConfig,
} from "../../src/agents/coordination/contracts/config/gates-config.ts";
import type { CheckAnswer, CheckRequest, Verifier } from "../../src/agents/coordination/ports/verifier.ts";
import type {
  ChannelNotice,
  HumanChannel,
  NoticeOutcome,
} from "../../src/agents/coordination/ports/human-channel.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { formatPlaceholder } from "../../src/agents/coordination/gates/placeholder.ts";
import { mustWithhold } from "../../src/agents/coordination/gates/withholds.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER, spawnOf, type World } from "../support/fake-clock-host.ts";

export const LINT = { kind: "pattern", pattern: "lint" } as const;
export const TEST = { kind: "pattern", pattern: "test" } as const;

const parsePhase1 = (settings: object) => parsePluginConfig({ coordination: { phase1: settings } });

/** The checks `checks` of every result of `main`, and whatever else is said. */
export function createGatesWith(checks: readonly string[], rest: object = {}): GatesConfig {
  const agents = { main: checks.length > 0 ? { checks } : {} };
  const verifiers = { lint: LINT, test: TEST };
  // A check that an operator took away after the step was admitted.
  const ever = { ...Object.fromEntries(checks.map((key) => [key, LINT])), ...verifiers };
  const { gates } = parsePhase1({ gates: { verifiers: ever, agents, verifyMs: 10_000, ...rest } });
  return { ...gates, verifiers };
}

export const createEscalationsWith = (settings: object): EscalationsConfig =>
  parsePhase1({ escalations: settings }).escalations;

/** The answer of a check: at once, never, when the test lets it, or by throwing. */
export type Answers = (request: CheckRequest, time: number) => CheckAnswer | Promise<CheckAnswer>;

export interface ScriptedVerifier {
  readonly verifier: () => Promise<Verifier>;
  readonly checkRequests: CheckRequest[];
}

export function createScriptedVerifier(answers: Answers): ScriptedVerifier {
  const checkRequests: CheckRequest[] = [];
  return {
    checkRequests: checkRequests,
    verifier: () =>
      Promise.resolve({
        check: async (request) => {
          checkRequests.push(request);
          return answers(request, checkRequests.filter(({ key }) => key === request.key).length);
        },
      }),
  };
}

export const createRuling = (
  verdict: "pass" | "fail" | "revise",
  rest: Partial<CheckAnswer & { kind: "verdict" }> = {},
): CheckAnswer => ({ kind: "verdict", verdict, criteria: [], agentId: "check:lint", ...rest });

export const waitForever = (): Promise<CheckAnswer> => new Promise(() => undefined);

export interface ScriptedChannel {
  readonly channel: HumanChannel;
  readonly notices: ChannelNotice[];
}

export function createScriptedChannel(
  outcome: (notice: ChannelNotice) => NoticeOutcome | Promise<NoticeOutcome> = () => ({
    kind: "delivered",
    tries: 1,
  }),
): ScriptedChannel {
  const notices: ChannelNotice[] = [];
  return {
    notices,
    channel: {
      notify: async (notice) => {
        notices.push(notice);
        return outcome(notice);
      },
    },
  };
}

export const listEvents = <T extends RunEvent["type"]>({ ledger }: Pick<World, "ledger">, type: T) =>
  ledger
    .events()
    .flat()
    .filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);

export interface SpawnedChild {
  readonly session: SessionKey;
  /** The text that others than the agent get in place of its words. */
  says(text: string): Promise<string>;
  ends(): Promise<void>;
}

/** A model's own spawn that the host has made a child for. */
export async function spawnChild(
  world: World,
  coordinator: Coordinator,
  task = "t",
  source = OWNER,
): Promise<SpawnedChild> {
  const admission = await coordinator.admitSpawn(spawnOf({ task, source }));
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId } = admission.envelope;
  const child = world.host.spawn(spawnOf({ task, source }));
  const { childSessionKey: session, childRunId } = child;
  const claim = { coordinationId, stepId, sourceSession: source, toolCallId: task };
  await coordinator.confirmSpawn(claim, { childSessionKey: session, childRunId });
  return {
    session,
    says: async (text) => {
      const gated = await coordinator.heldSessions.gated(session);
      const isHeld = gated && (gated.isStrict || mustWithhold(gated.gate, text, gated.reported));
      const shown = isHeld ? formatPlaceholder(world.texts.add(session, text)) : text;
      world.texts.keeping(session, "words", () => coordinator.heldSessions.keep(session, shown));
      await waitUntilSettled();
      return shown;
    },
    ends: async () => {
      const ending = { outcome: "completed" } as const;
      world.host.end(session, ending);
      await coordinator.endChild(session, ending);
      await waitUntilSettled();
    },
  };
}

/** Lets everything that is due at once happen. */
export async function waitUntilQuiet(world: Pick<World, "clock">): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await world.clock.advance(100);
}

export type { EventId };
