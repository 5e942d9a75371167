/**
 * P26, told twice: in the plain host a child does whatever its tools can do, whatever it was told; with the flag on it does what its
 * spawn lets it, and so does whatever it spawns. docs/pains.md names this test.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { stepNamed, type Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  createExec,
  factsOf,
  fileOf,
  put,
  read,
  readText,
  resultsOf,
  stepIdOf,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import type { SpawnArgs } from "../support/scripted-model.ts";
import { openPair, type Pair } from "./pair.ts";

const WAIT_MS_MAX = 90_000;

let pair: Pair;

beforeAll(async () => {
  pair = await openPair();
});

afterAll(() => pair.close());

const narrowed = (child: SpawnArgs, coordination: object): SpawnArgs => ({ ...child, coordination });

/** Told to look at a folder only, it overwrites, deletes and asks another agent. */
const READER = narrowed(
  childOf(
    "p26-reader",
    call(read("p26/notes.md")),
    call(write("p26/notes.md", "overwritten\n")),
    call(createExec("rm p26/other.md")),
    { spawn: [childOf("p26-helper", call(write("p26/helped.md", "by the helper\n")))] },
  ),
  { tools: { allow: ["read"] }, write: [] },
);

/** It may change one folder, and gives its own child everything. */
const WRITER = narrowed(
  childOf("p26-writer", call(write("p26/out/a.md", "a\n")), call(write("p26/notes.md", "overwritten\n")), {
    spawn: [
      narrowed(
        childOf(
          "p26-grandchild",
          call(write("p26/out/b.md", "b\n")),
          call(write("p26/out/../other.md", "overwritten\n")),
          call(createExec("rm p26/other.md")),
        ),
        { tools: { allow: ["*"] }, write: ["/**"] },
      ),
    ],
  }),
  { write: ["p26/out/**"], tools: { deny: ["process"] } },
);

function prepare(stage: Stage): void {
  put(stage, "p26/notes.md", "notes\n");
  put(stage, "p26/other.md", "other\n");
}

const hasSaid = ({ model }: Stage, label: string): boolean =>
  model.requests.some(({ turn }) => turn.say === `${label} is at its end`);

/** The names of the tools that the model of an agent was shown, with its first request. */
function listOffered({ model }: Stage, label: string): string[] {
  const request = model.requests.find(
    ({ turn, text }) => turn.say === undefined && text.includes(`${label} is at its end`),
  );
  return (request?.body.tools ?? []).flatMap(({ function: shown }) => shown?.name ?? []);
}

it("P26 no least privilege: a child that is told to look only overwrites, deletes and spawns", async () => {
  const { plain, coordinated } = pair;
  prepare(plain);
  await begin(plain, "p26-reading", { spawn: [READER] });
  await waitFor(() => hasSaid(plain, "p26-reader") && hasSaid(plain, "p26-helper"), {
    what: "the reader and its helper",
    timeoutMs: WAIT_MS_MAX,
  });
  expect(readText(plain, "p26/notes.md")).toBe("overwritten\n");
  expect(readText(plain, "p26/other.md")).toBeUndefined();
  expect(readText(plain, "p26/helped.md")).toBe("by the helper\n");

  prepare(coordinated);
  await begin(coordinated, "p26-reading", { spawn: [READER] });
  const state = await waitForEnd(coordinated, "p26-reading");
  console.log(listOffered(coordinated, "p26-reader"), listOffered(plain, "p26-reader").length);
  console.log(resultsOf(coordinated, "p26-reader"));
  console.log(JSON.stringify(factsOf(await coordinated.events(state), "privilege.refused")));
  expect(readText(coordinated, "p26/notes.md")).toBe("notes\n");
  expect(readText(coordinated, "p26/other.md")).toBe("other\n");
  expect(readText(coordinated, "p26/helped.md")).toBeUndefined();

  await begin(coordinated, "p26-writing", { spawn: [WRITER] });
  const writing = await waitForEnd(coordinated, "p26-writing");
  console.log(
    listOffered(coordinated, "p26-writer"),
    listOffered(plain, "p26-reader").filter((n) => !listOffered(coordinated, "p26-writer").includes(n)),
  );
  console.log(resultsOf(coordinated, "p26-writer"), resultsOf(coordinated, "p26-grandchild"));
  console.log(
    JSON.stringify(factsOf(await coordinated.events(writing), "privilege.refused")),
    stepIdOf(writing, "p26-writer"),
    stepNamed(writing, "p26-grandchild").spec.privilege,
    fileOf(coordinated, "x"),
  );
  console.log(
    coordinated.gateway
      .log()
      .split("\n")
      .filter((l) => /privileg|coordination/.test(l))
      .slice(-20)
      .join("\n"),
  );
});
