import { describe, expect, it } from "vitest";
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createPlanTools } from "../../src/plugins/openclaw/plans/plan-tools.ts";
import { contentOf } from "../support/ledger-fixtures.ts";
import { writeLongText } from "../support/long-text.ts";
import { createStubPlans, SESSION, stepView, viewOf } from "./stub-plans.ts";

const LONG = contentOf(writeLongText({ chars: 60_000, head: "BEGIN", middle: "MIDDLE", tail: "END" }));
/** One line. */
const HUGE = contentOf(writeLongText({ chars: 10_000_000, head: "BEGIN", middle: "MIDDLE", tail: "END" }));
const GONE = contentOf("deleted by retention");
const OUTPUTS = contentOf(JSON.stringify({ points: ["fast"] }));
const REPLACED = contentOf(JSON.stringify({ text: `"quoted"\n${LONG.text}` }));
const WORDS = contentOf('{"text":"words of the agent"}');
const CHILD = "agent:research:subagent:1" as SessionKey;

const createResults = (...contents: readonly ReturnType<typeof contentOf>[]) =>
  contents.map(({ ref }) => ({
    kind: [OUTPUTS.ref, REPLACED.ref].includes(ref) ? "outputs" : "text",
    attempt: 1,
    content: ref,
  }));

const view = viewOf([
  stepView("long", { name: "scout", status: "completed", results: createResults(LONG) }),
  stepView("both", { status: "completed", results: createResults(LONG, OUTPUTS) }),
  stepView("replaced", { status: "completed", results: createResults(REPLACED) }),
  stepView("words", { status: "completed", results: createResults(WORDS) }),
  stepView("huge", { status: "running", results: createResults(HUGE) }),
  stepView("gone", { status: "completed", results: createResults(GONE) }),
  stepView("short", { status: "completed" }),
  stepView("held", { status: "held", held: { checks: [], findings: [], failures: {} } }),
  stepView("busy", { status: "running", childSessionKey: CHILD, dependsOn: ["long"] }),
  stepView("below", { status: "completed", parentStepId: "busy", results: createResults(LONG) }),
]);

const stub = createStubPlans({
  envelopeForChild: (session) =>
    Promise.resolve(
      session === CHILD ? ({ coordinationId: "co-1", stepId: "busy" } as CoordinationEnvelope) : undefined,
    ),
  reads: {
    view: (id) => Promise.resolve(id === "co-1" ? view : undefined),
    get: (sha256) =>
      Promise.resolve([LONG, OUTPUTS, REPLACED, WORDS, HUGE].find(({ ref }) => ref.sha256 === sha256)?.text),
    list: () => Promise.resolve([{ runId: "co-1", summary: { ownerSession: SESSION } }] as never),
  },
});

interface Answer {
  readonly status: string;
  readonly message?: string;
  readonly [field: string]: unknown;
}

const ask = (params: unknown, sessionKey: string = SESSION): Promise<Answer> =>
  createPlanTools(stub.use, () => true)("coordination_result", { sessionKey }, params);
const readStep = (stepId: string, more: object = {}, session: string = SESSION): Promise<Answer> =>
  ask({ coordinationId: "co-1", stepId, ...more }, session);

/** The session owns a coordination whose log is damaged, and a newer one that is not. */
const besideDamage = createStubPlans({
  reads: {
    view: (id) =>
      id === "co-1"
        ? Promise.resolve(view)
        : Promise.reject(new CoordinationError("EVENT_UNREADABLE", "event 3 cannot be read")),
    list: () =>
      Promise.resolve(
        ["co-1", "co-0"].map((runId) => ({ runId, summary: { ownerSession: SESSION } })) as never,
      ),
  },
});

describe("coordination_result", () => {
  it("lists the results of other coordinations where the log of one is damaged, and counts that one", async () => {
    const tools = createPlanTools(besideDamage.use, () => true);
    const answer = await tools("coordination_result", { sessionKey: SESSION }, {});
    expect(answer).toMatchObject({ status: "ok", unreadable: 1 });
    expect(answer["results"]).toHaveLength(8);
    const damaged = await tools("coordination_result", { sessionKey: SESSION }, { coordinationId: "co-0" });
    expect(damaged).toMatchObject({ status: "error", message: expect.stringContaining("event 3") as string });
  });

  it("lists the results of its own coordinations where the log of the one that it works in is damaged", async () => {
    const { use } = createStubPlans({
      envelopeForChild: () =>
        Promise.reject(new CoordinationError("EVENT_UNREADABLE", "event 3 cannot be read")),
      reads: {
        view: (id) => Promise.resolve(id === "co-1" ? view : undefined),
        list: () => Promise.resolve([{ runId: "co-1", summary: { ownerSession: SESSION } }] as never),
      },
    });
    const answer = await createPlanTools(use, () => true)("coordination_result", { sessionKey: SESSION }, {});
    expect(answer).toMatchObject({ status: "ok", unreadable: 1 });
    expect(answer["results"]).toHaveLength(8);
  });

  it("lists what a session may read, and no text", async () => {
    const { results: listed } = (await ask({})) as unknown as { results: readonly { stepId: string }[] };
    expect(listed.map(({ stepId }) => stepId)).toEqual([
      "long",
      "both",
      "both",
      "replaced",
      "words",
      "huge",
      "gone",
      "below",
    ]);
    expect(listed[0]).toEqual({
      coordinationId: "co-1",
      stepId: "long",
      name: "scout",
      agent: "main",
      stepStatus: "completed",
      kind: "text",
      attempt: 1,
      ...LONG.ref,
    });
  });

  it("reads a result by pages that are the whole of it", async () => {
    let read = "";
    for (let from: unknown = 0; from !== undefined;) {
      const page = await readStep("long", { from });
      expect(JSON.stringify(page).length).toBeLessThan(20_000);
      read += String(page["text"]);
      from = page["next"];
    }
    expect(read).toBe(LONG.text);
  });

  it("searches in a result, from a character on", async () => {
    const answer = await readStep("long", { find: "MIDDLE" });
    expect(answer["matches"]).toMatchObject([{ at: LONG.text.indexOf("MIDDLE") }]);
    const many = await readStep("long", { find: "lorem" });
    expect(many["matches"]).toHaveLength(20);
    const next = await readStep("long", { find: "lorem", from: many["next"] });
    expect(next["matches"]).toHaveLength(20);
    expect(JSON.stringify(next)).not.toBe(JSON.stringify(many));
  });

  it("answers in bounds about one line of ten million characters, wherever in it it looks", async () => {
    const middle = HUGE.text.indexOf("MIDDLE");
    expect((await readStep("huge", { find: "MIDDLE" }))["matches"]).toMatchObject([{ at: middle }]);
    for (const params of [{}, { from: middle }, { find: "lorem" }, { find: "lorem", from: middle }])
      expect(JSON.stringify(await readStep("huge", params)).length).toBeLessThan(20_000);
    const last = await readStep("huge", { from: HUGE.text.length - 100 });
    expect(last).toMatchObject({ text: HUGE.text.slice(-100), chars: HUGE.text.length });
    expect(last).not.toHaveProperty("next");
  });

  it("reads the newest result of a step, or the one that is named", async () => {
    expect(await readStep("both")).toMatchObject({ kind: "outputs", text: OUTPUTS.text });
    expect(await readStep("both", { sha256: LONG.ref.sha256 })).toMatchObject({ kind: "text" });
    expect(await readStep("both", { sha256: "0".repeat(64) })).toMatchObject({ status: "error" });
  });

  it("reads a text that is kept as outputs as the text, where tellings name its places", async () => {
    const text = `"quoted"\n${LONG.text}`;
    expect(await readStep("replaced", { from: 5, chars: 10 })).toMatchObject({
      kind: "outputs",
      sha256: REPLACED.ref.sha256,
      chars: text.length,
      text: text.slice(5, 15),
      next: 15,
    });
    expect(await readStep("replaced", { find: "MIDDLE" })).toMatchObject({
      matches: [{ at: text.indexOf("MIDDLE") }],
    });
  });

  it("reads the words of an agent as they are, also where they look like outputs", async () => {
    expect(await readStep("words")).toMatchObject({ chars: WORDS.text.length, text: WORDS.text });
  });

  it.each([
    ["gone", "is not kept any more"],
    ["held", "is held until it is ruled on"],
    ["short", "left nothing here"],
    ["busy", "is running and has no result"],
  ])("says of the step %s in a sentence that its result %s", async (stepId, why) => {
    expect(await readStep(stepId)).toEqual({
      status: "error",
      message: expect.stringContaining(why) as string,
    });
  });

  it("shows a child what its step was given and what it spawned, and nothing else", async () => {
    expect(await readStep("long", {}, CHILD)).toMatchObject({ status: "ok" });
    expect(await readStep("below", {}, CHILD)).toMatchObject({ status: "ok" });
    const refused = { status: "error", message: 'no result of a step "both" belongs to this session' };
    expect(await readStep("both", {}, CHILD)).toEqual(refused);
    expect(await readStep("both", {}, "agent:other:main")).toEqual(refused);
  });

  it.each([
    { stepId: "long" },
    { coordinationId: "co-1", stepId: "long", from: -1 },
    { coordinationId: "co-1", stepId: "long", chars: 1_000_000 },
    { coordinationId: "co-1", stepId: "long", find: "" },
    { sha256: "x" },
    { all: true },
  ])("refuses %j in a sentence", async (params) => {
    expect(await ask(params)).toMatchObject({ status: "error" });
  });
});
