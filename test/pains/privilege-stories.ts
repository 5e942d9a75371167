/**
 * P26, told twice: in the plain host a child does whatever its tools can do, whatever it was told; with the flag on it does what its
 * spawn lets it, and so does whatever it spawns.
 */
import { expect } from "vitest";
import type { Stage } from "../e2e/stage.ts";
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
import { parseScript, type SpawnArgs } from "../support/scripted-model.ts";
import type { Pair } from "./pair.ts";
import { waitUntilSaid } from "./story-parts.ts";

const narrowChild = (child: SpawnArgs, coordination: object): SpawnArgs => ({ ...child, coordination });

/** Told to look at a folder only, it overwrites, deletes and asks another agent. */
const READER = narrowChild(
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
const WRITER = narrowChild(
  childOf("p26-writer", call(write("p26/out/a.md", "a\n")), call(write("p26/notes.md", "overwritten\n")), {
    spawn: [
      narrowChild(
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

/** The names of the tools that the model of an agent was shown, with its first request. */
function listOffered({ model }: Stage, label: string): string[] {
  const request = model.requests.find(
    ({ text }) => parseScript(text)?.turns.at(-1)?.say === `${label} is at its end`,
  );
  return (request?.body.tools ?? []).flatMap(({ function: shown }) => shown?.name ?? []);
}

/** P26: what children do that are told to look only, or to change one folder. */
export async function tellPrivileges({ plain, coordinated }: Pair): Promise<void> {
  prepare(plain);
  await begin(plain, "p26-reading", { spawn: [READER] });
  await waitUntilSaid(plain, ["p26-reader", "p26-helper"]);
  expect(readText(plain, "p26/notes.md")).toBe("overwritten\n");
  expect(readText(plain, "p26/other.md")).toBeUndefined();
  expect(readText(plain, "p26/helped.md")).toBe("by the helper\n");

  prepare(coordinated);
  await begin(coordinated, "p26-reading", { spawn: [READER] });
  const reading = await waitForEnd(coordinated, "p26-reading");
  expect(readText(coordinated, "p26/notes.md")).toBe("notes\n");
  expect(readText(coordinated, "p26/other.md")).toBe("other\n");
  expect(readText(coordinated, "p26/helped.md")).toBeUndefined();
  expect(listOffered(plain, "p26-reader")).toEqual(expect.arrayContaining(["read", "write", "exec"]));
  expect(listOffered(coordinated, "p26-reader").toSorted()).toEqual([
    "coordination_answer",
    "coordination_escalate",
    "coordination_progress",
    "coordination_report",
    "coordination_result",
    "coordination_status",
    "read",
  ]);
  // The host answers calls of a tool that the model is not shown, and they are recorded here.
  expect(resultsOf(coordinated, "p26-reader")[0]).toContain("notes");
  const refused = factsOf(await coordinated.events(reading), "privilege.refused");
  expect(refused.map(({ tool, rule }) => [tool, rule])).toEqual([
    ["write", "tools.allow"],
    ["exec", "tools.allow"],
    ["sessions_spawn", "tools.allow"],
  ]);

  await begin(coordinated, "p26-writing", { spawn: [WRITER] });
  const writing = await waitForEnd(coordinated, "p26-writing");
  expect(readText(coordinated, "p26/out/a.md")).toBe("a\n");
  expect(readText(coordinated, "p26/out/b.md")).toBe("b\n");
  expect(readText(coordinated, "p26/notes.md")).toBe("notes\n");
  expect(readText(coordinated, "p26/other.md")).toBe("other\n");
  expect(resultsOf(coordinated, "p26-writer")[1]).toMatch(
    /^Coordination refused this call: .+notes\.md lies outside of what this session may change, which is p26\/out\/\*\*/u,
  );
  const [, outside, unknown] = resultsOf(coordinated, "p26-grandchild");
  expect(outside).toMatch(/other\.md lies outside of what this session may change, which is p26\/out\/\*\*/u);
  expect(unknown).toMatch(/what exec would change cannot be told/u);
  const from = { by: "spawn", stepId: stepIdOf(writing, "p26-writer") };
  const [child, grandchild] = ["p26-writer", "p26-grandchild"].map((name) => stepIdOf(writing, name));
  expect(factsOf(await coordinated.events(writing), "privilege.refused")).toEqual([
    { stepId: child, tool: "write", rule: "write", from, resource: fileOf(coordinated, "p26/notes.md") },
    { stepId: grandchild, tool: "write", rule: "write", from, resource: fileOf(coordinated, "p26/other.md") },
    { stepId: grandchild, tool: "exec", rule: "write.unknown", from },
  ]);
  const notShown = listOffered(plain, "p26-reader").filter(
    (name) => !listOffered(coordinated, "p26-writer").includes(name),
  );
  expect(notShown).toEqual(["process"]);
  expect((await coordinated.verify()).ok).toBe(true);
}
