/** P24 and P28: what gets lost between a child and its parent: how far the child is, what it wants to know, and after a compaction that it exists. */
import { expect } from "vitest";
import type { Json } from "../support/gateway.ts";
import { textOf, type Rule, type SpawnArgs, type Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  gate,
  open,
  openGate,
  ownerOf,
  resultsOf,
  taskOf,
  waitForEnd,
} from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import { countWorkers, WAIT_MS_MAX, waitUntilSaid } from "./story-parts.ts";

/** The model of a parent that is asked by its child answers it. */
export function createAnsweringParent(answer: string): Rule {
  let questionId = "";
  return {
    when: (text) => {
      questionId = /asks you and waits .* the questionId "([^"]+)"/u.exec(text)?.[1] ?? "";
      return questionId !== "";
    },
    get turns(): readonly Turn[] {
      return [call({ name: "coordination_answer", args: { questionId, answer } }), { say: "NO_REPLY" }];
    },
  };
}

/** How many requests of other sessions had a text in them, outside of the scripts that say who is to write it. */
const countReaders = ({ model }: Stage, text: string, writer: string): number =>
  model.requests.filter(
    ({ body, turn }) =>
      turn.say !== `${writer} is at its end` &&
      turn.call === undefined &&
      body.messages.map(textOf).some((read) => read.includes(text) && !read.includes("SCRIPT:")),
  ).length;

const tell = (percent: number, line: string): Turn =>
  call({ name: "coordination_progress", args: { percent, line } });

const askParent = (question: string): Turn =>
  call({ name: "coordination_escalate", args: { to: "parent", question, waitMs: 60_000 } });

/** P24: a child tells how far it is, and asks its parent. */
export async function tellProgress({ plain, coordinated }: Pair): Promise<void> {
  const spawn = [
    childOf(
      "tells-child",
      tell(40, "reading the second half"),
      tell(10, "begun anew"),
      gate({ opens: ["tells told"], awaits: ["tells go"] }),
      askParent("Which of the two?"),
    ),
  ];
  const play = async (stage: Stage): Promise<void> => {
    await begin(stage, "tells", { spawn });
    await openGate(stage, "tells told");
  };

  await play(plain);
  await open(plain, "tells go");
  await waitUntilSaid(plain, ["tells-child"]);
  expect(resultsOf(plain, "tells-child").join("\n")).not.toMatch(/recorded|the blue one/u);

  await play(coordinated);
  const { coordinationId } = await coordinated.until(ownerOf("tells"), () => true);
  const { coordination } = await coordinated.gateway.call("coordination.status", { coordinationId });
  const { steps } = coordination as { readonly steps: readonly Json[] };
  expect(steps[0]?.["progress"]).toMatchObject({ percent: 40, line: "reading the second half" });
  await open(coordinated, "tells go");
  await waitUntilSaid(coordinated, ["tells-child"]);
  const [first, second, , answer] = resultsOf(coordinated, "tells-child");
  expect(first).toContain('"status":"recorded"');
  expect(second).toContain('"status":"too_soon"');
  expect(answer).toContain("the blue one");
  expect(countReaders(coordinated, "reading the second half", "tells-child")).toBe(0);
  const state = await waitForEnd(coordinated, "tells");
  expect(state.escalations.first()).toMatchObject({
    askedOf: ownerOf("tells"),
    answered: { by: { kind: "agent", session: ownerOf("tells") } },
  });
}

/** Messages to the model of a session in the turn that ended with these words. */
const promptOf = ({ model }: Stage, label: string): string => {
  const { messages } =
    model.requests.findLast(({ turn }) => turn.say === `${label} is at its end`)?.body ??
    expect.fail(`${label} did not come to its end`);
  return messages
    .filter(({ role }) => role === "user")
    .map(textOf)
    .join("\n");
};

const COMPACTED = "Your history was compacted.";

/** P28: the session of a parent is compacted, and the parent asks for the same again. */
export async function tellCompaction({ plain, coordinated }: Pair): Promise<void> {
  const child = childOf("lost-child");
  const again = { ...child, coordination: { again: true } } as SpawnArgs;
  const askFor = (stage: Stage, label: string, ...spawn: readonly SpawnArgs[]): Promise<unknown> =>
    stage.gateway.agent({ sessionKey: ownerOf("compacts"), message: taskOf(label, [{ spawn }]) });
  const isTold =
    ({ model }: Stage) =>
    (): boolean =>
      model.requests.some(
        ({ matched, body }) =>
          matched === "announce" && body.messages.some((message) => textOf(message).includes("compacts-1")),
      );
  const requestCompaction = async (stage: Stage): Promise<boolean> =>
    (await stage.gateway.call("sessions.compact", { key: ownerOf("compacts") }, WAIT_MS_MAX))["compacted"] ===
    true;
  const play = async (stage: Stage): Promise<void> => {
    await askFor(stage, "compacts-1", child);
    await waitFor(isTold(stage), { what: "the result in the parent", timeoutMs: WAIT_MS_MAX });
    if (stage.hasLedger()) await waitForEnd(stage, "compacts");
    await waitFor(() => requestCompaction(stage), { what: "the compaction", timeoutMs: WAIT_MS_MAX });
    await askFor(stage, "compacts-2", child);
  };

  await play(plain);
  await waitFor(() => countWorkers(plain, "lost-child") === 2, { what: "it again", timeoutMs: WAIT_MS_MAX });
  expect(promptOf(plain, "compacts-2")).not.toContain(COMPACTED);

  await play(coordinated);
  expect(countWorkers(coordinated, "lost-child")).toBe(1);
  const prompt = promptOf(coordinated, "compacts-2");
  expect(prompt).toContain(COMPACTED);
  expect(prompt).toContain('"lost-child": completed at ');
  const [refused] = resultsOf(coordinated, "compacts-2");
  expect(refused).toContain("Coordination refused this spawn");
  expect(refused).toMatch(/session agent:main:subagent:[\w-]+/u);

  await askFor(coordinated, "compacts-3", again, again);
  await waitFor(() => countWorkers(coordinated, "lost-child") === 3, {
    what: "two more, which were meant",
    timeoutMs: WAIT_MS_MAX,
  });
  expect(promptOf(coordinated, "compacts-3")).not.toContain(COMPACTED);
}
