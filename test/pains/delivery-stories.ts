/** P1, P3, P4, P6 and P12: who hears of a result, and how often. */
import { expect } from "vitest";
import { renderScript, scriptOf, textOf } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { stepNamed, type Stage } from "../e2e/stage.ts";
import { begin, childOf, createMeeting, ownerOf, waitForEnd } from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import {
  countMessagesWith,
  listAnnounces,
  listRequestsOf,
  listTellings,
  passTime,
  planOf,
  readChild,
  readDelivery,
  readTaskOf,
  runPlan,
  stepOf,
  TRIED_AGAIN,
  WAIT_MS_MAX,
} from "./story-parts.ts";

/** P1: a child says nothing in the end. */
export async function tellLostAnnounce({ plain, coordinated }: Pair): Promise<void> {
  const hasAsked = (stage: Stage) => (): boolean => stage.model.requests.some(({ turn }) => turn.say === "");
  const task = renderScript({ say: "" });
  await begin(plain, "silent", { spawn: [{ label: "silent-child", task }] });
  await waitFor(hasAsked(plain), { what: "the silent child", timeoutMs: WAIT_MS_MAX });
  await passTime(plain, "silent-after");
  expect(listAnnounces(plain, "silent")).toEqual([]);

  await runPlan(coordinated, planOf("silent", [{ stepId: "silent-child", agent: "main", task }]));
  const state = await waitForEnd(coordinated, "silent");
  expect(stepNamed(state, "silent-child").phase.status).toBe("completed");
  expect(listTellings(coordinated, "silent")).toHaveLength(1);
}

/** P3: the turn in which a session is told fails for good. */
export async function tellBurntRetries({ plain, coordinated }: Pair): Promise<void> {
  await begin(plain, "unheard", { spawn: [childOf("unheard-child")] });
  const failure = `direct announce failed for run ${readChild(plain, "unheard").runId}`;

  await runPlan(coordinated, planOf("unheard", [stepOf("unheard-step", [])]));
  const state = await waitForEnd(coordinated, "unheard");
  expect(listTellings(coordinated, "unheard")).toHaveLength(1);
  expect(await readDelivery(coordinated, state)).toBe("delivered");
  await begin(coordinated, "unheard");
  const next = listRequestsOf(coordinated, "unheard").at(-1);
  expect(next && countMessagesWith(next, "The plan unheard has ended")).toBe(1);

  const hasTriedAgain = (): boolean => plain.gateway.log().split(failure).length > 2;
  await waitFor(hasTriedAgain, { what: "another try of the host", timeoutMs: WAIT_MS_MAX, everyMs: 500 });
  const tellings = listRequestsOf(plain, "unheard").filter(({ matched }) => matched !== "script");
  expect(tellings.map(({ turn }) => turn.httpError)).toEqual([400]);
}

/** P4: whether the result has arrived. */
export async function tellReceipt({ plain, coordinated }: Pair): Promise<void> {
  await begin(plain, "receipt", { spawn: [childOf("receipt-child")] });
  const child = readChild(plain, "receipt");
  const isDelivered = async (): Promise<boolean> =>
    (await readTaskOf(plain, child))?.["deliveryStatus"] === "delivered";
  await waitFor(isDelivered, { what: "the host's word", timeoutMs: WAIT_MS_MAX, everyMs: 250 });
  expect(listAnnounces(plain, "receipt")).not.toEqual([]);

  await runPlan(coordinated, planOf("receipt", [stepOf("receipt-step", [])]));
  const state = await waitForEnd(coordinated, "receipt");
  expect(await readDelivery(coordinated, state)).toBe("delivered");
  expect(listTellings(coordinated, "receipt")).toHaveLength(1);
}

/** P6: a model that goes on waiting when all results are there. */
export async function tellMissingSynthesis({ plain, coordinated }: Pair): Promise<void> {
  const onAnnounce = "Noted. I wait for the others.";
  const spawn = [childOf("synthesis-1"), childOf("synthesis-2")];
  const message = scriptOf({ turns: [{ spawn }, { say: "synthesis is at its end" }], onAnnounce });
  await plain.gateway.agent({ sessionKey: ownerOf("synthesis"), message });
  const hasSettled = (): boolean =>
    listAnnounces(plain, "synthesis").some(({ text }) => text.includes("Every subagent spawned"));
  await waitFor(hasSettled, { what: "the host's last word", timeoutMs: WAIT_MS_MAX });
  const answers = listAnnounces(plain, "synthesis").map(({ turn }) => turn.say);
  expect(new Set(answers)).toEqual(new Set([onAnnounce]));

  const outputSchema = { type: "object", required: ["text"], properties: { text: { type: "string" } } };
  const synthesis = {
    stepId: "synthesis",
    agent: "main",
    task: `synthesis-step ${renderScript({ say: '{"text": "All of it."}' })}`,
    dependsOn: ["synthesis-1", "synthesis-2"],
    outputSchema,
  };
  const sources = [stepOf("synthesis-1", []), stepOf("synthesis-2", [])];
  await runPlan(coordinated, planOf("synthesis", [...sources, synthesis], TRIED_AGAIN));
  const state = await waitForEnd(coordinated, "synthesis");
  expect(stepNamed(state, "synthesis").phase).toMatchObject({ status: "completed", attempt: 2 });
  expect(listTellings(coordinated, "synthesis")[0]?.text).toContain("All of it.");
}

/** P12: children that end at the same time. */
export async function tellRaceOfEnds({ plain, coordinated }: Pair): Promise<void> {
  const labels = ["race-1", "race-2", "race-3"];
  const meetingOf = (label: string) => createMeeting("race", label, labels);
  const logged = plain.gateway.log().length;
  await begin(plain, "race", { spawn: labels.map((label) => childOf(label, meetingOf(label))) });
  const hasReadAll = (): boolean => {
    const words = listAnnounces(plain, "race").at(-1)?.body.messages.map(textOf).join("\n") ?? "";
    return labels.every((label) => new RegExp(`^${label} is at its end$`, "mu").test(words));
  };
  await waitFor(hasReadAll, { what: "all results in the parent", timeoutMs: WAIT_MS_MAX });
  // The host of today tells of one child after the other. This keeps watching.
  expect(plain.gateway.log().slice(logged)).not.toMatch(/SessionTakeover|session file changed/u);

  const steps = labels.map((label) => stepOf(label, [meetingOf(label)]));
  await runPlan(coordinated, planOf("race", steps));
  const state = await waitForEnd(coordinated, "race");
  expect(state).toMatchObject({ status: "success" });
  expect(listTellings(coordinated, "race")).toHaveLength(1);
}
