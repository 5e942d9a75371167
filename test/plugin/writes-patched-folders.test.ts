/** Owns: how patches are ruled on that delete folders and links, or put files in the place of these. */
import { linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { PrivilegeBound } from "../../src/agents/coordination/privileges/privilege-bound.ts";
import { findWriteRefusal } from "../../src/agents/coordination/runtime/privileges/write-bounds.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { read, requireRefused, write, type ToolCall } from "../core/arbiter-calls.ts";
import { createRealSceneFiles, openScene, type Scene } from "../core/arbiter-scene.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createPatch, readCall } from "./writes-calls.ts";

let calls = 0;

/** A call of `apply_patch` by a planned step, and what it does to the files. */
async function createPatchCall(
  s: Scene,
  stepId: string,
  lines: readonly string[],
  tools: () => void = () => undefined,
): Promise<ToolCall> {
  calls += 1;
  const reading = await readCall("apply_patch", createPatch(...lines), { folder: s.folder });
  if (!reading) throw new Error("a patch is always read");
  return { ...reading, session: s.sessionOf(stepId), tool: "apply_patch", callKey: `patch-${calls}`, tools };
}

/** Step `low` holds a file, and step `high` wins over it by its priority. */
async function openPatchScene(claimed: string): Promise<Scene> {
  const s = await openScene({ files: createRealSceneFiles(), conflicts: { strategy: "priority_wins" } });
  await s.plan([
    { stepId: "low", priority: "low" },
    { stepId: "high", priority: "high" },
  ]);
  expect((await s.does(write(s, s.sessionOf("low"), { [claimed]: "low" }))).kind).toBe("granted");
  return s;
}

describe("a patch that deletes a folder", () => {
  it.each([
    ["in which a folder stays that has more in it", ["*** Delete File: src/deep", "*** Delete File: src"]],
    [
      "with another file beside one that it adds and deletes again",
      ["*** Add File: src/deep/t", "+x", "*** Delete File: src/deep/t", "*** Delete File: src/deep"],
    ],
    [
      "in which it deletes something that is not there",
      ["*** Delete File: src/deep/missing", "*** Delete File: src/deep"],
    ],
    [
      "in which it moves the only file to another name",
      [
        "*** Update File: src/deep/a.md",
        "*** Move to: src/deep/b.md",
        "@@",
        "-low",
        "+x",
        "*** Delete File: src/deep",
      ],
    ],
    [
      "in which it adds a file in place of the only one",
      ["*** Delete File: src/deep/a.md", "*** Add File: src/deep/b/c.md", "+x", "*** Delete File: src/deep"],
    ],
    [
      "in which it deletes the only file and adds it again",
      ["*** Delete File: src/deep/a.md", "*** Add File: src/deep/a.md", "+x", "*** Delete File: src/deep"],
    ],
  ])("takes nothing from those below it %s", async (_name, lines) => {
    await using s = await openPatchScene("src/deep/a.md");
    await s.does(read(s, s.sessionOf("high"), "src/deep/a.md"));
    await s.ask(await createPatchCall(s, "high", lines));
    expect(await s.holders("src/deep/new.md")).toEqual([]);
    expect(await s.holders("src/new.md")).toEqual([]);
  });

  it("is ruled on where it deletes the whole tree, links included", async () => {
    await using s = await openPatchScene("src/deep/a.md");
    symlinkSync("deep", join(s.folder, "src/way"));
    symlinkSync("nowhere", join(s.folder, "src/dangling"));
    mkdirSync(join(s.folder, "src/empty"));
    writeFileSync(join(s.folder, "src/image"), Buffer.from([0, 255]));
    await s.does(read(s, s.sessionOf("high"), "src/deep/a.md"));
    const names = ["src/deep/a.md", "src/deep", "src/way", "src/dangling", "src/empty", "src/image", "src"];
    const lines = names.map((name) => `*** Delete File: ${name}`);
    expect((await s.ask(await createPatchCall(s, "high", lines))).kind).toBe("granted");
    expect(await s.holders("src/new.md")).toEqual(["plan-1/high"]);
  });
});

describe("a patch that puts a folder in the place of something", () => {
  const LINES = ["*** Delete File: src/tool", "*** Add File: src/tool/index.ts", "+x"];

  it("changes the files in that folder, also for those who write later without having read them", async () => {
    await using s = await openPatchScene("src/tool");
    await s.does(read(s, s.sessionOf("high"), "src/tool"));
    const performPatch = (): void => {
      s.remove("src/tool");
      s.put("src/tool/index.ts", "x\n");
    };
    expect((await s.does(await createPatchCall(s, "high", LINES, performPatch))).kind).toBe("granted");
    expect(s.events("resource.changed")).toContainEqual(
      expect.objectContaining({ stepId: "high", resource: s.resource("src/tool/index.ts") }),
    );
    expect(await s.holders("src/tool/index.ts")).toContain("plan-1/high");
    await s.ends(s.sessionOf("high"));
    for (const { token } of s.events("claim.acquired")) await s.coordinator.arbiter.release(token);
    const later = await s.ask(write(s, s.sessionOf("low"), { "src/tool/index.ts": "low" }));
    expect(requireRefused(later).sentence).toContain("changed");
  });

  it("does not change what a link led to that it deletes first", async () => {
    await using s = await openPatchScene("releases/1/a.md");
    symlinkSync("releases/1", join(s.folder, "current"));
    linkSync(join(s.folder, "releases/1/a.md"), join(s.folder, "releases/1/b.md"));
    const lines = ["*** Delete File: current", "*** Add File: current/a.md", "+x"];
    const performPatch = (): void => {
      rmSync(join(s.folder, "current"));
      s.put("current/a.md", "x\n");
    };
    expect((await s.does(await createPatchCall(s, "high", lines, performPatch))).kind).toBe("granted");
    expect(await s.holders("releases/1/a.md")).toEqual(["plan-1/low"]);
    expect(s.events("conflict.detected")).toEqual([]);
    expect(s.events("resource.changed").map(({ resource }) => resource)).toContain(
      s.resource("current/a.md"),
    );
  });

  it("changes both where it writes through a link first", async () => {
    await using s = await openPatchScene("releases/1/a.md");
    symlinkSync("releases/1", join(s.folder, "current"));
    const update = ["*** Update File: current/a.md", "@@", "-low", "+x"];
    const lines = [...update, "*** Delete File: current", "*** Add File: current/a.md", "+x"];
    await s.does(read(s, s.sessionOf("high"), "releases/1/a.md"));
    expect((await s.ask(await createPatchCall(s, "high", lines))).kind).toBe("granted");
    for (const name of ["releases/1/a.md", "current"])
      expect(await s.holders(name), name).toContain("plan-1/high");
    expect(await s.holders("releases/1/a.md")).not.toContain("plan-1/low");
  });
});

describe("a session that may write below one folder only", () => {
  /** The rule that refuses a patch; `undefined` for one that may happen. */
  async function findRule(folder: string, ...lines: readonly string[]): Promise<string | undefined> {
    const { targets, undetermined } =
      (await readCall("apply_patch", createPatch(...lines), { folder })) ?? {};
    const bound = { by: "spawn", privilege: { write: ["src/**"] } } as unknown as PrivilegeBound;
    const refusal = await findWriteRefusal(
      { files: createRealFiles(), folderOf: () => folder },
      { bounds: [bound], worktrees: [] },
      { tool: "apply_patch", targets: targets ?? [], ...(undetermined && { undetermined }) },
    );
    return refusal?.rule;
  }

  it("may turn a file or a link in there into a folder, and none that lies elsewhere", async () => {
    using temp = createTempFolder();
    for (const name of ["src/tool", "outside/a.ts"]) {
      mkdirSync(dirname(temp.file(name)), { recursive: true });
      writeFileSync(temp.file(name), "x");
    }
    linkSync(temp.file("outside/a.ts"), temp.file("outside/b.ts"));
    symlinkSync("../outside", temp.file("src/way"));
    symlinkSync("src", temp.file("into"));
    const find = (name: string, added: string): Promise<string | undefined> =>
      findRule(temp.path, `*** Delete File: ${name}`, `*** Add File: ${name}/${added}`, "+x");
    expect(await find("src/tool", "deep/index.ts")).toBeUndefined();
    expect(await find("src/way", "a.ts")).toBeUndefined();
    expect(await find("into", "a.ts")).toBe("write");
    expect(await findRule(temp.path, "*** Add File: src/way/new.ts", "+x", "*** Delete File: src/way")).toBe(
      "write",
    );
  });
});
