/** Words of a child on their way: kept from its parent, shortened for it, or not sent to a chat. */
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { ContentRef } from "../../src/agents/coordination/contracts/fact-fields.ts";
import { payloadsOf } from "./claims-scene.ts";
import { admit, dispatch, failStep, openPlan, planScene, planStep, startStep } from "./planned-scene.ts";
import {
  acknowledge,
  complete,
  describeReason,
  OPEN,
  openScene,
  spawn,
  stepId,
  type Scene,
} from "./scene.ts";

interface Words {
  readonly step?: number;
  readonly attempt?: number;
  readonly text?: string;
}

type Tell = (words?: Words) => Command;

const createTextRef = (text: string): ContentRef => ({
  sha256: Buffer.from(text).toString("hex").padStart(64, "0"),
  bytes: text.length,
});
const withhold: Tell = ({ step = 1, attempt = 1, text = "text" } = {}) => ({
  type: "withholdText",
  stepId: stepId(step),
  attempt,
  text: createTextRef(text),
});
const shorten: Tell = ({ step = 1, attempt = 1, text = "text" } = {}) => ({
  type: "recordShortened",
  stepId: stepId(step),
  attempt,
  text: createTextRef(text),
  chars: 200,
  shownChars: 100,
});
const keepFromChat: Tell = ({ step = 1, attempt = 1 } = {}) => ({
  type: "recordSuppressed",
  stepId: stepId(step),
  attempt,
  through: "message",
  channel: "chat",
  chars: 12,
  media: 0,
});

const openSpawned = (): Scene => openScene(OPEN, spawn("a"), acknowledge(1));
/** Step 1 of a plan, in its second attempt. */
const openAgain = () =>
  planScene(
    openPlan({ steps: 1 }),
    admit(planStep("step-1", { retryBudget: 1 })),
    dispatch("step-1"),
    startStep("step-1"),
    failStep("step-1"),
    dispatch("step-1", 2),
    startStep("step-1", 2),
  );

const ALL: readonly (readonly [string, Tell])[] = [
  ["withheld", withhold],
  ["shortened", shorten],
  ["suppressed", keepFromChat],
];

describe.each(ALL)("words that are %s", (_, tell) => {
  it("are recorded as they are", () => {
    const scene = openSpawned();
    expect(scene.when(tell())).toMatchObject({ kind: "accepted", stepId: stepId(1) });
    const { type: ignored, ...payload } = tell();
    expect(ignored).toBeTypeOf("string");
    expect(scene.log.at(-1)?.payload).toEqual(payload);
  });

  it("are words of a step that there is", () => {
    expect(describeReason(openSpawned().when(tell({ step: 9 })))).toBe(
      "UNKNOWN_STEP: there is no step step-9",
    );
  });
});

describe.each([
  {
    kind: "shortened",
    tell: shorten,
    type: "result.shortened",
    most: BOUNDS.shortenedTextsMax,
    name: "long texts",
  },
  {
    kind: "suppressed",
    tell: keepFromChat,
    type: "message.suppressed",
    most: BOUNDS.suppressedMessagesMax,
    name: "suppressed messages",
  },
] as const)("words that are $kind", ({ tell, type, most, name }) => {
  it("may be words of an attempt that is over, but of none that was not begun", () => {
    const scene = openAgain();
    for (const attempt of [1, 2])
      expect(scene.when(tell({ attempt, text: `of ${attempt}` })).kind).toBe("accepted");
    for (const attempt of [0, 3])
      expect(describeReason(scene.when(tell({ attempt })))).toBe(
        `STALE_ATTEMPT: step step-1 has no attempt ${attempt}`,
      );
  });

  it("may come after the end of the step", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1), complete(1));
    expect(scene.when(tell()).kind).toBe("accepted");
  });

  it("are kept up to a number", () => {
    const scene = openSpawned();
    for (let number = 0; number < most; number += 1)
      expect(scene.when(tell({ text: `text ${number}` })).kind).toBe("accepted");
    expect(describeReason(scene.when(tell()))).toBe(
      `TOO_MANY_TEXTS: step step-1 has ${most} ${name}, the most that are kept`,
    );
    expect(payloadsOf(scene.log, type)).toHaveLength(most);
  });
});

describe("a text that was shortened", () => {
  it("is recorded once for each attempt", () => {
    const scene = openAgain().then(shorten({ attempt: 2 }), shorten({ attempt: 2, text: "another" }));
    expect(scene.when(shorten({ attempt: 2 }))).toEqual({ kind: "replay", stepId: "step-1" });
    expect(scene.when(shorten({ attempt: 1 })).kind).toBe("accepted");
  });
});

describe("a text that is withheld", () => {
  it("is recorded again when another came between", () => {
    const scene = openSpawned();
    scene.when(withhold());
    expect(scene.when(withhold())).toEqual({ kind: "replay", stepId: stepId(1) });
    scene.when(withhold({ text: "another" }));
    expect(scene.when(withhold()).kind).toBe("accepted");
  });

  it("may come before the child is known", () => {
    expect(openScene(OPEN, spawn("a")).when(withhold()).kind).toBe("accepted");
  });

  it("is one of the attempt that is at work", () => {
    expect(describeReason(openAgain().when(withhold()))).toBe(
      "STALE_ATTEMPT: attempt 1 of step step-1 is not the current attempt, which is 2",
    );
    const ended = openScene(OPEN, spawn("a"), acknowledge(1), complete(1));
    expect(describeReason(ended.when(withhold()))).toBe("STEP_ENDED: step step-1 is completed");
  });

  it("is kept up to a number for each attempt", () => {
    const scene = openSpawned();
    for (let number = 0; number < BOUNDS.withheldTextsMax; number += 1)
      scene.when(withhold({ text: `text ${number}` }));
    expect(describeReason(scene.when(withhold()))).toBe(
      `TOO_MANY_TEXTS: attempt 1 of step step-1 has ${BOUNDS.withheldTextsMax} withheld texts, the most that are kept`,
    );
  });
});
