/** Owns: what a session was told, or waits to be told, as far as its turns may go on. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { listTellingsToSession } from "../../src/agents/coordination/ledger/tellings.ts";
import { answer, ask, contentRef, createSpawnedScene, DOUBTING, OWNER, recordTold } from "./gates-scene.ts";
import type { PlanScene } from "./planned-scene.ts";
import { complete, nameChild } from "./scene.ts";

const listIds = ({ state }: PlanScene, session: SessionKey = OWNER): string[] =>
  state.kind === "unopened" ? [] : listTellingsToSession(state, session).map(({ tellingId }) => tellingId);

const askParent = (words: string) => ask({ askedOf: OWNER, question: contentRef(words) });
const createAsking = (): PlanScene => createSpawnedScene(DOUBTING).then(askParent("first"));

const WITHHOLD: Command = {
  type: "withholdText",
  stepId: "step-1" as StepId,
  attempt: 1,
  text: contentRef("words"),
  confidence: 100,
};

describe("the tellings to a session", () => {
  it("are what it is asked, once each, also when it was told or the question is closed", () => {
    const scene = createAsking();
    expect(listIds(scene)).toEqual(["question:escalation-1"]);
    scene.then(recordTold("question:escalation-1"), askParent("second"));
    expect(listIds(scene)).toEqual(["question:escalation-1", "question:escalation-2"]);
    scene.then(answer("answer"), answer("answer", { number: 2 }));
    expect(listIds(scene)).toEqual(["question:escalation-1", "question:escalation-2"]);
  });

  it("are answers that it waits for", () => {
    const scene = createAsking().then(answer("answer"));
    expect(listIds(scene, nameChild(1))).toEqual(["answer:escalation-1"]);
    scene.then(recordTold("answer:escalation-1"));
    expect(listIds(scene, nameChild(1))).toEqual([]);
  });

  it("are results that were kept from it, once they are settled", () => {
    const scene = createSpawnedScene(DOUBTING).then(WITHHOLD, complete(1));
    expect(listIds(scene)).toEqual([]);
    scene.then(answer("approve"));
    expect(listIds(scene)).toEqual(["result:step-1:1"]);
    scene.then(recordTold("result:step-1:1"));
    expect(listIds(scene)).toEqual(["result:step-1:1"]);
  });

  it("are none of which no turn began", () => {
    const scene = createAsking().then(askParent("second"));
    scene.then({ type: "recordTelling", tellingId: "question:escalation-1", delivery: "not_delivered" });
    scene.then({ type: "recordTelling", tellingId: "question:escalation-2", delivery: "unknown" });
    expect(listIds(scene)).toEqual(["question:escalation-2"]);
  });

  it("are the newest twenty, and none of another session or of people", () => {
    const scene = createSpawnedScene(DOUBTING).then(ask());
    // The first letter tells questions apart.
    for (const letter of "ABCDEFGHIJKLMNOPQRSTUV") scene.then(askParent(letter));
    const ids = listIds(scene);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([20, "question:escalation-4", "question:escalation-23"]);
    expect(listIds(scene, nameChild(2))).toEqual([]);
  });

  it("are in their order, whatever they are about", () => {
    const scene = createAsking().then(
      WITHHOLD,
      complete(1),
      answer("approve", { number: 2 }),
      ask({ askedBy: nameChild(1), askedOf: OWNER, question: contentRef("late") }),
    );
    expect(listIds(scene)).toEqual(["question:escalation-1", "result:step-1:1", "question:escalation-3"]);
  });
});
