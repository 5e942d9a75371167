/** Forks of a plan in the real gateway: by the command line, under a stricter policy, over kill -9. Nobody is asked again for kept results. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Json } from "../support/gateway.ts";
import {
  renderScript,
  textOf,
  type RecordedRequest,
  type Rule,
  type Turn,
} from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import {
  answer,
  expectSound,
  factsOf,
  ownerOf,
  planOf,
  runPlan,
  stepOf,
  WAIT_MS_MAX,
} from "./gates-stage.ts";
import { runPackedProgram } from "./packed-program.ts";
import { hasEnded, openStage, type Known, type Stage } from "./stage.ts";

const SOURCE = "source";
const OWNER = ownerOf(SOURCE);
const STEPS = ["a", "b", "c", "d"] as const;
type StepName = (typeof STEPS)[number];

const AGAIN = "again";
const STRICTER = "stricter";
const KILLED = "killed";

const taskOf = (stepId: StepName): string => `Task of step ${stepId}.`;

const report = (args: Json): Turn => ({
  call: [{ name: "coordination_report", args: { outcome: "completed", ...args } }],
});

const scriptReport = (stepId: StepName, args: Json = {}): string =>
  `${taskOf(stepId)} ${renderScript(report({ outputs: { found: `found-by-${stepId}` }, ...args }), { say: "Reported." })}`;

/** a, then b and c, then d, which reads what both came to. */
const PLAN = planOf(SOURCE, [
  stepOf("a", scriptReport("a")),
  stepOf("b", scriptReport("b", { confidence: 0.8 }), { dependsOn: ["a"] }),
  stepOf("c", scriptReport("c"), { dependsOn: ["a"] }),
  stepOf("d", scriptReport("d"), {
    dependsOn: ["b", "c"],
    input: { b: "{{steps.b.outputs.found}}", c: "{{steps.c.outputs.found}}" },
  }),
]);

/** As the plugin's context in the system prompt of a child says. */
function isAbout({ messages }: RecordedRequest["body"], coordinationId: string, stepId: StepName): boolean {
  const place = `"coordinationId":"${coordinationId}","stepId":"${stepId}"`;
  return messages.some((message) => message.role === "system" && textOf(message).includes(place));
}

let isKilled = false;

/** `c` goes wrong in the source, and takes too long in a fork until the gateway is killed. */
const RULES: readonly Rule[] = [
  {
    when: (_, request) => isAbout(request, SOURCE, "c"),
    turns: [report({ outcome: "failed", outputs: {} }), { say: "It went wrong." }],
  },
  {
    when: (_, request) => isAbout(request, KILLED, "c") && !isKilled,
    turns: [{ say: "never", delayMs: 120_000 }],
  },
];

let stage: Stage;
let source: Known;

beforeAll(async () => {
  stage = await openStage({}, RULES);
  await runPlan(stage, PLAN);
  source = await waitUntil(SOURCE, hasEnded);
});

afterAll(() => stage.close());

function waitUntil(coordinationId: string, condition: (state: Known) => boolean): Promise<Known> {
  return waitFor(
    async () => {
      const state = (await stage.of(OWNER)).find(
        (coordination) => coordination.coordinationId === coordinationId,
      );
      return state && condition(state) ? state : undefined;
    },
    { what: `the plan ${coordinationId}`, timeoutMs: WAIT_MS_MAX, everyMs: 100 },
  );
}

const phaseOf = (state: Known, stepId: StepName) => state.steps.get(stepId as StepId)?.phase;

/** The requests of agents that work on the step. The host repeats tasks in the prompts of their owner. */
function listRequestsFor(stepId: StepName): RecordedRequest[] {
  return stage.model.requests.filter(({ body }) =>
    body.messages.some(
      (message) => message.role === "system" && textOf(message).includes(`"stepId":"${stepId}"`),
    ),
  );
}

/** The steps whose agents were asked since then, in whichever coordination. */
function listAskedSince(count: number): StepName[] {
  const since = new Set(stage.model.requests.slice(count));
  return STEPS.filter((stepId) => listRequestsFor(stepId).some((request) => since.has(request)));
}

async function read(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runPackedProgram(args, stage.ledgerPath);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

const readJson = async (...args: string[]): Promise<unknown> =>
  JSON.parse(await read(...args, "--json")) as unknown;

/** The message to the agent of `d` in a fork. */
function findToldToLast(coordinationId: string): string | undefined {
  return listRequestsFor("d").find(({ body }) => isAbout(body, coordinationId, "d"))?.text;
}

function expectKept(state: Known, kept: readonly StepName[]): void {
  for (const stepId of kept)
    expect(phaseOf(state, stepId)).toMatchObject({
      status: "completed",
      attempt: 0,
      carriedFrom: source.steps.get(stepId as StepId)?.lastFactId,
    });
}

describe("a fork of a plan that ended in part", () => {
  let requestCount: number;
  let forked: { readonly code: number; readonly printed: unknown };

  beforeAll(async () => {
    expect(source).toMatchObject({ status: "partial" });
    expect(STEPS.map((stepId) => phaseOf(source, stepId)?.status)).toEqual([
      ...["completed", "completed", "failed", "skipped"],
    ]);
    requestCount = stage.model.requests.length;
    const { code, stdout, stderr } = await stage.gateway.openclaw([
      ...["coordination", "fork", SOURCE, "--as", AGAIN, "--wait", "--json"],
    ]);
    if (stdout === "") throw new Error(`the command ended with ${code}: ${stderr}`);
    forked = { code, printed: JSON.parse(stdout) };
  });

  it("ends with success, and the command that waited for it says so", () => {
    expect(forked).toMatchObject({
      code: 0,
      printed: {
        ok: true,
        coordinationId: AGAIN,
        forkedFrom: { coordinationId: SOURCE, sequence: source.nextSequence },
        steps: 4,
        carried: ["a", "b"],
        anew: ["c", "d"],
        replay: false,
        preview: false,
        waited: "ended",
        coordination: { coordinationId: AGAIN, status: "success", delivery: "completed" },
      },
    });
  });

  it("asks no agent of a kept step again, and tells what waited for it the kept result", async () => {
    expect(listAskedSince(requestCount)).toEqual(["c", "d"]);
    expect(findToldToLast(AGAIN)).toContain('"b": "found-by-b"');
    expect(findToldToLast(AGAIN)).toContain('"c": "found-by-c"');
    const state = await waitUntil(AGAIN, hasEnded);
    expectKept(state, ["a", "b"]);
    expect((await factsOf(stage, state, "step.dispatched")).map(({ stepId }) => stepId)).toEqual([
      ...["c", "d", "@delivery"],
    ]);
    expect(await stage.events(source)).toHaveLength(source.nextSequence);
    await expectSound(stage, state);
  });

  it("is shown, drawn, proved and replayed by the other commands", async () => {
    const { lastFactId: carriedFrom } = source.steps.get("b" as StepId) ?? {};
    expect(await readJson("show", AGAIN)).toMatchObject({
      forkedFrom: { coordinationId: SOURCE, sequence: source.nextSequence },
      steps: [
        { stepId: "a", status: "completed", attempt: 0 },
        { stepId: "b", status: "completed", attempt: 0, carriedFrom },
        { stepId: "c", status: "completed", attempt: 1, idempotencyKey: `${AGAIN}:c:1` },
        { stepId: "d", status: "completed", attempt: 1, idempotencyKey: `${AGAIN}:d:1` },
        { stepId: "@delivery", status: "completed" },
      ],
    });
    expect(await readJson("timeline", AGAIN)).toMatchObject({ coordinationId: AGAIN, status: "success" });
    expect(await read("show", AGAIN)).toContain(`fork of ${SOURCE}`);
    expect(await read("timeline", AGAIN)).toContain(`fork of ${SOURCE}`);
    expect(await readJson("verify")).toMatchObject({ ok: true, problems: [] });
    expect(await readJson("replay", AGAIN)).toMatchObject({ kind: "coordination", equal: true });
  });
});

describe("a fork under a policy that asks for more confidence", () => {
  /** Before b and c began. */
  let from: number | undefined;

  beforeAll(async () => {
    const begun = (await stage.events(source)).find(
      ({ type, nodeId }) => type === "step.dispatched" && nodeId === "b",
    );
    from = begun?.sequence;
  });

  const forkStricter = (more: Json = {}): Promise<Json> =>
    stage.gateway.call("coordination.plan.fork", {
      coordinationId: SOURCE,
      forkId: STRICTER,
      from,
      policy: { gates: { confidenceThreshold: 0.9 } },
      ...more,
    });

  it("is only told of by a preview, which writes nothing", async () => {
    const before = await stage.verify();
    expect(await forkStricter({ preview: true })).toMatchObject({
      preview: true,
      carried: ["a"],
      anew: ["b", "c", "d"],
    });
    expect(await stage.verify()).toEqual(before);
    expect((await stage.of(OWNER)).map(({ coordinationId }) => coordinationId)).toEqual([SOURCE, AGAIN]);
  });

  it("holds a result that the source let through, and goes on when people approve it", async () => {
    const requestCount = stage.model.requests.length;
    expect(await forkStricter()).toMatchObject({ preview: false, replay: false });
    const open = await waitUntil(STRICTER, ({ escalations }) => escalations.size > 0);
    expect([phaseOf(open, "b")?.status, phaseOf(open, "d")?.status]).toEqual(["held", "waiting"]);
    const { questions } = await stage.gateway.call("coordination.questions", { coordinationId: STRICTER });
    expect(questions).toMatchObject([
      { stepId: "b", status: "open", confidence: { measured: 8_000, floor: 9_000, of: "result" } },
    ]);
    const [{ questionId } = { questionId: "" }] = questions as { questionId: string }[];
    expect(findToldToLast(STRICTER)).toBeUndefined();
    expect(await answer(stage, questionId, "approve")).toMatchObject({ resolution: "approved" });
    const state = await waitUntil(STRICTER, hasEnded);
    expect(state).toMatchObject({ status: "success" });
    expect(phaseOf(state, "b")).toMatchObject({ status: "completed", attempt: 1, released: "approved" });
    expect(phaseOf(source, "b")).not.toHaveProperty("released");
    expect(listAskedSince(requestCount)).toEqual(["b", "c", "d"]);
    expectKept(state, ["a"]);
    expect(findToldToLast(STRICTER)).toContain('"b": "found-by-b"');
    await expectSound(stage, state);
  });
});

describe("a fork whose gateway is killed with -9", () => {
  const PARAMS = { coordinationId: SOURCE, forkId: KILLED, policy: { retry: { budget: 2, backoffMs: 200 } } };

  it("goes on after the start, with each kept result and no agent asked for one", async () => {
    const requestCount = stage.model.requests.length;
    expect(await stage.gateway.call("coordination.plan.fork", PARAMS)).toMatchObject({ replay: false });
    await waitUntil(KILLED, (running) => phaseOf(running, "c")?.status === "running");
    await waitFor(() => listAskedSince(requestCount).includes("c"), {
      what: "the agent at work",
      timeoutMs: 30_000,
    });
    isKilled = true;
    await stage.gateway.kill9();
    expect((await stage.verify()).problems).toEqual([]);
    await stage.restart();
    const state = await waitUntil(KILLED, hasEnded);
    expect(state).toMatchObject({ status: "success" });
    expect(listAskedSince(requestCount)).toEqual(["c", "d"]);
    expectKept(state, ["a", "b"]);
    expect(findToldToLast(KILLED)).toContain('"b": "found-by-b"');
    expect(await stage.gateway.call("coordination.plan.fork", PARAMS)).toMatchObject({ replay: true });
    await expectSound(stage, state);
    expect(await readJson("replay", KILLED)).toMatchObject({ equal: true });
  });
});
