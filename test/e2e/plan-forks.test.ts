/** Forks of a plan in the real gateway: by the command line, under a stricter policy. Nobody is asked again for kept results. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Json } from "../support/gateway.ts";
import { answer, expectSound, factsOf, ownerOf, runPlan } from "./gates-stage.ts";
import {
  createSourcePlan,
  createSourceRule,
  expectCarried,
  findMessageToLast,
  listAskedSince,
  phaseOf,
  readProgram,
  readProgramJson,
  STEPS,
  waitForPlan,
} from "./plan-forks-stage.ts";
import { hasEnded, openStage, type OpenedCoordination, type Stage } from "./stage.ts";

const SOURCE = "source";
const AGAIN = "again";
const STRICTER = "stricter";

let stage: Stage;
let source: OpenedCoordination;

beforeAll(async () => {
  stage = await openStage({}, [createSourceRule(SOURCE)]);
  await runPlan(stage, createSourcePlan(SOURCE));
  source = await waitUntil(SOURCE, hasEnded);
});

afterAll(() => stage.close());

const waitUntil = (
  plan: string,
  condition: (state: OpenedCoordination) => boolean,
): Promise<OpenedCoordination> => waitForPlan(stage, { source: SOURCE, plan }, condition);

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
    expect(listAskedSince(stage, requestCount)).toEqual(["c", "d"]);
    expect(findMessageToLast(stage, AGAIN)).toContain('"b": "found-by-b"');
    expect(findMessageToLast(stage, AGAIN)).toContain('"c": "found-by-c"');
    const state = await waitUntil(AGAIN, hasEnded);
    expectCarried({ fork: state, source }, ["a", "b"]);
    expect((await factsOf(stage, state, "step.dispatched")).map(({ stepId }) => stepId)).toEqual([
      ...["c", "d", "@delivery"],
    ]);
    expect(await stage.events(source)).toHaveLength(source.nextSequence);
    await expectSound(stage, state);
  });

  it("is shown, drawn, proved and replayed by the other commands", async () => {
    const { lastFactId: carriedFrom } = source.steps.get("b" as StepId) ?? {};
    expect(await readProgramJson(stage, "show", AGAIN)).toMatchObject({
      forkedFrom: { coordinationId: SOURCE, sequence: source.nextSequence },
      steps: [
        { stepId: "a", status: "completed", attempt: 0 },
        { stepId: "b", status: "completed", attempt: 0, carriedFrom },
        { stepId: "c", status: "completed", attempt: 1, idempotencyKey: `${AGAIN}:c:1` },
        { stepId: "d", status: "completed", attempt: 1, idempotencyKey: `${AGAIN}:d:1` },
        { stepId: "@delivery", status: "completed" },
      ],
    });
    expect(await readProgramJson(stage, "timeline", AGAIN)).toMatchObject({
      coordinationId: AGAIN,
      status: "success",
    });
    expect(await readProgram(stage, "show", AGAIN)).toContain(`fork of ${SOURCE}`);
    expect(await readProgram(stage, "timeline", AGAIN)).toContain(`fork of ${SOURCE}`);
    expect(await readProgramJson(stage, "verify")).toMatchObject({ ok: true, problems: [] });
    expect(await readProgramJson(stage, "replay", AGAIN)).toMatchObject({
      kind: "coordination",
      equal: true,
    });
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
    expect((await stage.of(ownerOf(SOURCE))).map(({ coordinationId }) => coordinationId)).toEqual([
      SOURCE,
      AGAIN,
    ]);
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
    expect(findMessageToLast(stage, STRICTER)).toBeUndefined();
    expect(await answer(stage, questionId, "approve")).toMatchObject({ resolution: "approved" });
    const state = await waitUntil(STRICTER, hasEnded);
    expect(state).toMatchObject({ status: "success" });
    expect(phaseOf(state, "b")).toMatchObject({ status: "completed", attempt: 1, released: "approved" });
    expect(phaseOf(source, "b")).not.toHaveProperty("released");
    expect(listAskedSince(stage, requestCount)).toEqual(["b", "c", "d"]);
    expectCarried({ fork: state, source }, ["a"]);
    expect(findMessageToLast(stage, STRICTER)).toContain('"b": "found-by-b"');
    await expectSound(stage, state);
  });
});
