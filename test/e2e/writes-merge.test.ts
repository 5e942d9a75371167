/** Merges of calls in the real gateway: several files of one patch, changes that came between, and what cannot merge. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Turn } from "../support/scripted-model.ts";
import { stepNamed, type Stage } from "./stage.ts";
import {
  REFUSED,
  begin,
  call,
  childOf,
  listConflicts,
  edit,
  waitForEnd,
  createExec,
  expectSound,
  fileOf,
  gate,
  createMeeting,
  open,
  openWritesStage,
  ownerOf,
  patchOf,
  pathOf,
  put,
  read,
  resultsOf,
  run,
  stepIdOf,
  readText,
  write,
} from "./writes-stage.ts";

let stage: Stage;

beforeAll(async () => {
  stage = await openWritesStage({ strategy: "merge_if_safe" });
});

afterAll(() => stage.close());

const LINES = "one\ntwo\nthree\nfour\nfive\n";

/** The first changes files and stays at work; the second changes them after it. */
async function mergeAfter(label: string, first: readonly Turn[], second: readonly Turn[]) {
  const both = ["first", "second"];
  const nameLabel = (name: string): string => `${label} ${name}`;
  const spawn = [
    childOf(
      `${label}-first`,
      ...first,
      gate({ opens: [nameLabel("held")] }),
      createMeeting(nameLabel("over"), "first", both),
    ),
    childOf(
      `${label}-second`,
      gate({ awaits: [nameLabel("held")] }),
      ...second,
      createMeeting(nameLabel("over"), "second", both),
    ),
  ];
  const state = await run(stage, label, { spawn });
  return { state, events: await expectSound(stage, state) };
}

it("one patch of several files lands in each of them, beside what another agent did there", async () => {
  put(stage, "patch/a.txt", LINES);
  put(stage, "patch/b.txt", LINES);
  const { events } = await mergeAfter(
    "patch",
    [call(edit("patch/a.txt", "one", "one by first"), write("patch/b.txt", LINES.replace("two", "2")))],
    [
      call(
        patchOf(
          ...["*** Update File: patch/a.txt", "@@", "-five", "+five by second"],
          ...["*** Add File: patch/c.txt", "+c by second"],
          ...["*** Update File: patch/b.txt", "@@ two", " three", "-four", "+4"],
        ),
      ),
    ],
  );
  expect(resultsOf(stage, "patch-second")[1]).not.toMatch(REFUSED);
  expect(readText(stage, "patch/a.txt")).toBe(
    LINES.replace("one", "one by first").replace("five", "five by second"),
  );
  expect(readText(stage, "patch/b.txt")).toBe(LINES.replace("two", "2").replace("four", "4"));
  expect(readText(stage, "patch/c.txt")).toBe("c by second\n");
  expect(
    listConflicts(events).map(({ resource, resolutions: [conflict] }) => [resource, conflict?.because]),
  ).toEqual([
    [fileOf(stage, "patch/a.txt"), "merged"],
    [fileOf(stage, "patch/b.txt"), "merged"],
  ]);
});

it("one patch with a file that does not merge is refused as a whole", async () => {
  put(stage, "whole/a.txt", LINES);
  put(stage, "whole/b.txt", LINES);
  const { events } = await mergeAfter(
    "whole",
    [call(read("whole/a.txt"), read("whole/b.txt")), call(write("whole/b.txt", "all new\n"))],
    [
      call(
        patchOf(
          ...["*** Update File: whole/a.txt", "@@", "-one", "+1"],
          ...["*** Update File: whole/b.txt", "@@", "-five", "+5"],
          ...["*** Add File: whole/c.txt", "+c"],
        ),
      ),
    ],
  );
  const sentence = resultsOf(stage, "whole-second")[1];
  const [conflict, ...more] = listConflicts(events);
  expect(more).toEqual([]);
  expect(conflict).toMatchObject({
    resource: fileOf(stage, "whole/b.txt"),
    resolutions: [{ rule: "strategy" }],
  });
  expect(sentence).toMatch(REFUSED);
  expect(sentence).toContain(`(conflict ${conflict?.conflictId})`);
  expect(readText(stage, "whole/a.txt")).toBe(LINES);
  expect(readText(stage, "whole/b.txt")).toBe("all new\n");
  expect(readText(stage, "whole/c.txt")).toBeUndefined();
});

it("a whole file that is based on an older version gets what came between", async () => {
  put(stage, "between.txt", LINES);
  const spawn = [
    childOf(
      "between-reader",
      call(read("between.txt")),
      gate({ opens: ["between read"], awaits: ["between ended"] }),
      call(write("between.txt", LINES.replace("five", "five by the reader"))),
    ),
    childOf(
      "between-other",
      gate({ awaits: ["between read"] }),
      call(edit("between.txt", "one", "one by the other")),
    ),
  ];
  await begin(stage, "between", { spawn });
  await stage.until(
    ownerOf("between"),
    (coordination) => stepNamed(coordination, "between-other").phase.status === "completed",
  );
  await open(stage, "between ended");
  const state = await waitForEnd(stage, "between");
  const events = await expectSound(stage, state);
  expect(readText(stage, "between.txt")).toBe(
    LINES.replace("one", "one by the other").replace("five", "five by the reader"),
  );
  expect(resultsOf(stage, "between-reader")[2]).toContain("Successfully wrote");
  expect(listConflicts(events)).toMatchObject([
    {
      contest: { cause: "stale_base", merge: { kind: "clean" } },
      resolutions: [{ winner: stepIdOf(state, "between-reader"), losers: [], because: "merged" }],
    },
  ]);
});

it("keeps a file's own line endings", async () => {
  put(stage, "crlf.txt", LINES.replaceAll("\n", "\r\n"));
  await mergeAfter(
    "crlf",
    [call(edit("crlf.txt", "one", "one by first"))],
    [call(edit("crlf.txt", "five", "five by second"))],
  );
  const merged = LINES.replace("one", "one by first").replace("five", "five by second");
  expect(readText(stage, "crlf.txt")).toBe(merged.replaceAll("\n", "\r\n"));
});

it("does not merge what is no text", async () => {
  const bytes = Buffer.from([0xff, 0x00, 0xfe, 0x0a]);
  const { events } = await mergeAfter(
    "binary",
    // No tool writes what is no text: a command does, under the claim of the write.
    [call(write("binary.dat", "text\n")), call(createExec("printf '\\377\\000\\376\\n' > binary.dat"))],
    [call(write("binary.dat", "text\n"))],
  );
  expect(resultsOf(stage, "binary-second")[1]).toMatch(REFUSED);
  expect(readFileSync(pathOf(stage, "binary.dat"))).toEqual(bytes);
  expect(listConflicts(events)).toMatchObject([
    {
      contest: { merge: { kind: "obstacle", obstacle: "not_text" } },
      resolutions: [{ because: "not-text" }],
    },
  ]);
});
