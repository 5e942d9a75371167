/**
 * Owns: what an author of hooks must be able to write, and what must not compile. Checked by `tsc`, never run. The plain types
 * of authors say the same as ours.
 */
import type { Contestant } from "../../src/agents/coordination/contracts/arbitration.ts";
import type { Question } from "../../src/agents/coordination/ports/human-channel.ts";
import type { CheckRequest, VerifiedResult } from "../../src/agents/coordination/ports/verifier.ts";
import type { HookHost } from "../../src/plugins/hooks/hook-host.ts";
import {
  registerCoordinationHooks,
  type ContestSide,
  type HookQuestion,
  type HookResult,
} from "../../src/plugins/hooks/hooks.ts";
import { createHookHarness, sampleContest } from "../../src/plugins/hooks/testing.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";

declare const api: OpenClawPluginApi;
declare const host: HookHost;
declare const question: Question;
declare const result: VerifiedResult;
declare const request: CheckRequest;
declare const contestant: Contestant;

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

/** Our values can be given to a hook as they are, and have the same fields. */
export const ours = {
  question: question satisfies HookQuestion,
  result: result satisfies HookResult,
  side: contestant satisfies ContestSide,
  questionFields: true satisfies Same<keyof Question, keyof HookQuestion>,
  resultFields: true satisfies Same<keyof VerifiedResult, keyof HookResult>,
  check: (): unknown => host.verify(request, "plugin:x"),
};

/** The host's own API will do, and every form of a hook. */
export function register(): () => void {
  registerCoordinationHooks(api, {}, { priority: 1 });
  registerCoordinationHooks(api, {
    arbitrate: async ({ holders }) => {
      await Promise.resolve();
      if (holders.some(({ declared }) => declared)) return { award: "holder", reason: "It is declared." };
      return undefined;
    },
    verify: {
      agents: ["writer"],
      budgetMs: 5,
      priority: 2,
      run: (_result, { signal }) => ({ verdict: signal.aborted ? "fail" : "pass" }),
    },
    decide: (decision) => (decision.kind === "plan" && decision.steps > 5 ? { action: "deny" } : undefined),
    escalate: async (open, answer) => {
      if (open.text !== undefined) await answer({ answer: "approve", by: "somebody" });
    },
    observe: {
      run: (event) => {
        if (event.type === "step.completed") return event.payload.attempt;
        return undefined;
      },
    },
  });
  registerCoordinationHooks(api, {
    escalate: () => undefined,
    decide: () => undefined,
    observe: () => undefined,
  });
  registerCoordinationHooks(api, { escalate: () => ({ answer: "deny" }) });
  const doNothing = (): void => undefined;
  return registerCoordinationHooks(api, { escalate: doNothing, observe: doNothing });
}

export function registerWrong(): void {
  // @ts-expect-error there is no such hook
  registerCoordinationHooks(api, { arbitrat: () => undefined });
  // @ts-expect-error nobody else can be awarded
  registerCoordinationHooks(api, { arbitrate: () => ({ award: "nobody", reason: "" }) });
  // @ts-expect-error a ruling has a reason
  registerCoordinationHooks(api, { arbitrate: () => ({ award: "holder" }) });
  // @ts-expect-error a verifier has a verdict
  registerCoordinationHooks(api, { verify: () => undefined });
  // @ts-expect-error only verifiers are for some agents
  registerCoordinationHooks(api, { decide: { agents: ["a"], run: () => undefined } });
  // @ts-expect-error a confidence is a number
  registerCoordinationHooks(api, { decide: () => ({ action: "allow", confidence: "0.5" }) });
  // @ts-expect-error people approve, deny or answer
  registerCoordinationHooks(api, { escalate: () => ({ answer: "yes" }) });
  registerCoordinationHooks(api, {
    verify: (hookResult) => {
      // @ts-expect-error what is verified is not changed
      hookResult.text = "better";
      return { verdict: "pass" };
    },
  });
}

export async function testHarness(): Promise<void> {
  const harness = createHookHarness({ pluginId: "x" });
  registerCoordinationHooks(harness.api, {});
  const ruling = await harness.arbitrate(sampleContest({ resource: "queue:mail" }));
  if (ruling && "failed" in ruling) harness.problems.at(-1)?.message.trim();
  else ruling?.award satisfies "requester" | "holder" | undefined;
  // @ts-expect-error there is no such field of a contest
  sampleContest({ resources: [] });
}
