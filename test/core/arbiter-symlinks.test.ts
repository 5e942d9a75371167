/** Owns: which patterns of policies hold for a file that a symbolic link leads to. */
import { existsSync, mkdirSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { WriteTarget } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { remove, requireRefused, write, type ToolCall } from "./arbiter-calls.ts";
import {
  createValueFiles,
  createRealSceneFiles,
  openScene,
  type Fields,
  type Scene,
  type SceneOptions,
} from "./arbiter-scene.ts";

const THROUGH_LINK = "current/prod.env";
const REAL = "releases/1/prod.env";

/** `current` leads to `releases/1`, `low` holds the file there, and `high` has the higher priority. */
async function openLinkedScene(
  conflictsIn: (folder: string) => NonNullable<SceneOptions["conflicts"]>,
  planIn: (folder: string) => Fields = () => ({}),
): Promise<Scene> {
  const files = createRealSceneFiles();
  mkdirSync(join(files.folder, "releases/1"), { recursive: true });
  symlinkSync("releases/1", join(files.folder, "current"));
  files.put(REAL, "x\n");
  const s = await openScene({ files, conflicts: conflictsIn(files.folder) });
  await s.plan(
    [
      { stepId: "low", priority: "low" },
      { stepId: "high", priority: "high" },
    ],
    planIn(files.folder),
  );
  expect((await s.does(write(s, s.sessionOf("low"), { [REAL]: "of low\n" }))).kind).toBe("granted");
  return s;
}

/** Asks for a write by the step of the higher priority. */
async function askHigh(s: Scene, name: string): Promise<string> {
  return (await s.ask(write(s, s.sessionOf("high"), { [name]: "of high\n" }))).kind;
}

describe("a high-risk pattern that leads through a symbolic link", () => {
  it.each([THROUGH_LINK, REAL])("leaves the file to people that the call names as %s", async (name) => {
    await using s = await openLinkedScene((folder) => ({
      strategy: "priority_wins",
      highRisk: [`${folder}/${THROUGH_LINK}`],
    }));
    const answer = await s.ask(write(s, s.sessionOf("high"), { [name]: "of high\n" }));
    expect(requireRefused(answer).sentence).toContain("a person must decide");
    expect(s.events("conflict.detected")).toMatchObject([
      { contest: { strategy: "manual_review", from: "high_risk" } },
    ]);
    expect(await s.holders(REAL)).toEqual(["plan-1/low"]);
  });

  it.each(["current", "current/", "current/**", "current/*.env", "./current/./prod.env"])(
    "leads there also as %s",
    async (pattern) => {
      await using s = await openLinkedScene((folder) => ({
        strategy: "priority_wins",
        highRisk: [`file:${folder}/${pattern}`],
      }));
      expect(await askHigh(s, REAL)).toBe("refused");
    },
  );

  it("leads nowhere else", async () => {
    await using s = await openLinkedScene((folder) => ({
      strategy: "priority_wins",
      highRisk: [`${folder}/current/*.md`, `file:@elsewhere:${folder}/current`, "/releases"],
    }));
    expect(await askHigh(s, REAL)).toBe("granted");
  });

  it("counts also where a plan has it", async () => {
    await using s = await openLinkedScene(
      () => ({ strategy: "priority_wins" }),
      (folder) => ({ conflictPolicy: { highRisk: [`${folder}/current`] } }),
    );
    expect(await askHigh(s, REAL)).toBe("refused");
  });
});

describe("a pattern that fits below any folder", () => {
  it("counts for the name by which the call reaches the file", async () => {
    await using s = await openLinkedScene(() => ({
      strategy: "priority_wins",
      highRisk: [THROUGH_LINK],
    }));
    expect(await askHigh(s, "releases/../current/prod.env")).toBe("refused");
  });

  it("counts also where the call names the file by its real path, too", async () => {
    await using s = await openLinkedScene(() => ({
      strategy: "priority_wins",
      highRisk: [THROUGH_LINK],
    }));
    for (const order of [
      [REAL, THROUGH_LINK],
      [THROUGH_LINK, REAL],
    ]) {
      const texts = Object.fromEntries(order.map((name) => [name, "of high\n"]));
      expect((await s.ask(write(s, s.sessionOf("high"), texts))).kind, order.join()).toBe("refused");
    }
  });

  it("counts also where a plan makes an exception by it", async () => {
    await using s = await openLinkedScene(
      () => ({ strategy: "priority_wins" }),
      () => ({ conflictPolicy: { overrides: [{ resource: "current", strategy: "owner_wins" }] } }),
    );
    expect(await askHigh(s, THROUGH_LINK)).toBe("refused");
    expect(await askHigh(s, REAL)).toBe("granted");
  });

  it("makes nothing looser for a name that is not the file's real one", async () => {
    await using s = await openLinkedScene(() => ({
      strategy: "owner_wins",
      overrides: [{ resource: "current", strategy: "priority_wins" }],
    }));
    expect(await askHigh(s, THROUGH_LINK)).toBe("refused");
  });

  it("and names the real path is not held off by a link that no pattern names", async () => {
    await using s = await openLinkedScene(() => ({
      strategy: "owner_wins",
      overrides: [{ resource: "releases", strategy: "priority_wins" }],
    }));
    expect(await askHigh(s, THROUGH_LINK)).toBe("granted");
  });
});

describe("the operator's exception by a pattern that leads through a symbolic link", () => {
  it("holds for the file, in its place among the others", async () => {
    const openWith = (first: string, second: string): Promise<Scene> =>
      openLinkedScene((folder) => ({
        strategy: "owner_wins",
        overrides: [
          { resource: `${folder}/${first}`, strategy: "priority_wins" },
          { resource: `${folder}/${second}`, strategy: "manual_review" },
        ],
      }));
    await using before = await openWith("current/*.env", "releases");
    expect(await askHigh(before, REAL)).toBe("granted");
    await using behind = await openWith("releases", "current/*.env");
    expect(await askHigh(behind, REAL)).toBe("granted");
    await using stricter = await openWith("current/*.md", "current");
    expect(await askHigh(stricter, REAL)).toBe("refused");
  });
});

describe("a pattern that begins with ~", () => {
  it.each(["~/.ssh/**", "file:~/.ssh", "~/.ssh/key", "~"])(
    "holds below the home folder as %s",
    async (pattern) => {
      const values = createValueFiles();
      const files = { ...values, files: { ...values.files, home: "/repo/home" } };
      await using s = await openScene({
        files,
        conflicts: { strategy: "priority_wins", highRisk: [pattern] },
      });
      await s.plan([
        { stepId: "low", priority: "low" },
        { stepId: "high", priority: "high" },
      ]);
      for (const name of ["home/.ssh/key", "~/.ssh/key"]) {
        expect((await s.does(write(s, s.sessionOf("low"), { [name]: "low" }))).kind).toBe("granted");
      }
      expect(await askHigh(s, "home/.ssh/key")).toBe("refused");
      expect(await askHigh(s, "~/.ssh/key")).toBe("granted");
    },
  );
});

/** Files of a disk without `current`, which leads to `releases` as long as it answers, and of a mount that never does. */
function createSlowFiles() {
  const values = createValueFiles();
  const looks: string[] = [];
  const slow = new Set(["/mnt/nas"]);
  const files: typeof values.files = {
    ...values.files,
    locate: (path, folder) => {
      if (folder === "/") looks.push(path);
      if (slow.has(path)) return new Promise<never>(() => undefined);
      return values.files.locate(path === "/repo/current" ? "/repo/releases" : path, folder);
    },
  };
  return { files: { ...values, files }, looks, slow };
}

describe("patterns that the file system does not follow in time", () => {
  it("hold up a write for half a second, and no other write", async () => {
    const { files, looks } = createSlowFiles();
    await using s = await openScene({ files, conflicts: { highRisk: ["/mnt/nas/**"] } });
    const [one, other] = [await s.child("one"), await s.child("other")];
    const first = s.does(write(s, one, { a: "1" }));
    await s.clock.advance(500);
    expect((await first).kind).toBe("granted");
    expect((await s.does(write(s, other, { b: "1" }))).kind).toBe("granted");
    await s.clock.advance(5_000);
    expect((await s.does(write(s, one, { a: "2" }))).kind).toBe("granted");
    expect(looks).toEqual(["/mnt/nas"]);
  });

  it("hold as they led last", async () => {
    const { files, slow } = createSlowFiles();
    const conflicts = { strategy: "priority_wins" as const, highRisk: ["/repo/current"] };
    await using s = await openScene({ files, conflicts });
    await s.plan([
      { stepId: "low", priority: "low" },
      { stepId: "high", priority: "high" },
    ]);
    expect((await s.does(write(s, s.sessionOf("low"), { [REAL]: "of low\n" }))).kind).toBe("granted");
    slow.add("/repo/current");
    await s.clock.advance(1_000);
    const kind = askHigh(s, REAL);
    await s.clock.advance(500);
    expect(await kind).toBe("refused");
  });

  it("of a plan are looked up to a bound, and again a second later only", async () => {
    const { files, looks } = createSlowFiles();
    await using s = await openScene({ files });
    const highRisk = Array.from({ length: 200 }, (_, index) => `/data/${index}`);
    await s.plan([{ stepId: "a" }], { conflictPolicy: { highRisk } });
    const writeFile = () => s.does(write(s, s.sessionOf("a"), { a: "1" }));
    for (const count of [64, 64]) {
      expect((await writeFile()).kind).toBe("granted");
      expect(looks).toHaveLength(count);
    }
    await s.clock.advance(1_000);
    expect((await writeFile()).kind).toBe("granted");
    expect(looks).toHaveLength(128);
  });
});

/** A target as that of a patch whose first step is to delete it. */
function removeFirst(target: WriteTarget): WriteTarget {
  return { ...target, ends: ["entry"], replaces: true };
}

describe("a call that removes a symbolic link", () => {
  const removeEntry = (s: Scene, stepId: string, name: string): ToolCall => {
    const call = remove(s, s.sessionOf(stepId), name);
    return { ...call, targets: call.targets.map(removeFirst) };
  };

  it("changes the link, not the folder or file that it leads to", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "owner_wins" }));
    symlinkSync("releases/1/prod.env", join(s.folder, "env"));
    for (const name of ["current", "env"]) {
      expect((await s.does(removeEntry(s, "high", name))).kind, name).toBe("granted");
      expect(existsSync(join(s.folder, name))).toBe(false);
    }
    expect(s.text(REAL)).toBe("of low\n");
    expect(s.events("resource.changed").slice(1)).toMatchObject([
      { stepId: "high", resource: s.resource("current"), version: "absent" },
      { stepId: "high", resource: s.resource("env"), version: "absent" },
    ]);
  });

  it("is ruled on against who holds the link", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "owner_wins" }));
    await s.ask(removeEntry(s, "low", "current"));
    expect((await s.ask(removeEntry(s, "high", "current"))).kind).toBe("refused");
    expect(readlinkSync(join(s.folder, "current"))).toBe("releases/1");
  });

  it("and writes there changes both", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "owner_wins" }));
    const call = write(s, s.sessionOf("high"), { [THROUGH_LINK]: "new\n" });
    const targets = call.targets.map((target) => ({ ...target, ends: ["entry", "target"] as const }));
    expect((await s.ask({ ...call, targets })).kind).toBe("refused");
  });
});

describe("a call that deletes a folder", () => {
  it("is ruled on where it is empty against who holds a file that is to be in it", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "owner_wins" }));
    mkdirSync(join(s.folder, "drafts"));
    const pending = write(s, s.sessionOf("low"), { "drafts/new.md": "low" });
    expect((await s.ask(pending)).kind).toBe("granted");
    await s.clock.advance(3_000);
    const call = remove(s, s.sessionOf("high"), "drafts");
    const targets = call.targets.map(removeFirst);
    expect(requireRefused(await s.ask({ ...call, targets, hookBeganAtMs: 0 as never })).sentence).toContain(
      "drafts",
    );
  });

  it("is given its claim back where the tool fails, so that nobody is kept out of the folder", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "owner_wins" }));
    const call = remove(s, s.sessionOf("high"), "releases/2");
    mkdirSync(join(s.folder, "releases/2"));
    const targets = call.targets.map(removeFirst);
    expect((await s.ask({ ...call, targets })).kind).toBe("granted");
    expect(await s.holders("releases/2/new.md")).toEqual(["plan-1/high"]);
    await s.coordinator.arbiter.callEnded(call.callKey, { hasFailed: true });
    expect(await s.holders("releases/2/new.md")).toEqual([]);
  });

  it("takes nothing from those who hold something in it where the tool can only fail, as more is in it", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "priority_wins" }));
    for (const name of ["releases", "releases/1"]) {
      const call = remove(s, s.sessionOf("high"), name);
      await s.ask({ ...call, targets: call.targets.map(removeFirst) });
      expect(await s.holders(name), name).toEqual(["plan-1/low"]);
    }
    expect(s.events("conflict.detected")).toEqual([]);
  });

  it("is ruled on where the call deletes or moves away all that is in it", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "owner_wins" }));
    s.put("src/a.md", "a");
    s.put("src/b.md", "b");
    const [moved, ...deleted] = ["src/a.md", "src/b.md", "src"].map((name) =>
      remove(s, s.sessionOf("high"), name),
    );
    const targets = [
      ...(moved?.targets ?? []).map((target) => ({ ...target, ends: ["entry"] as const })),
      ...deleted.flatMap((call) => call.targets.map(removeFirst)),
    ];
    expect((await s.ask({ ...remove(s, s.sessionOf("high"), "src"), targets })).kind).toBe("granted");
    expect(await s.holders("src/new.md")).toEqual(["plan-1/high"]);
  });

  it("is not ruled on where the call deletes files in a folder of it, which stays", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "owner_wins" }));
    s.put("src/deep/a.md", "a");
    const targets = ["src/deep/a.md", "src"].flatMap((name) =>
      remove(s, s.sessionOf("high"), name).targets.map(removeFirst),
    );
    await s.ask({ ...remove(s, s.sessionOf("high"), "src"), targets });
    expect(await s.holders("src/new.md")).toEqual([]);
  });

  it("is not ruled on where it would be moved, which a tool that moves files can only fail at", async () => {
    await using s = await openLinkedScene(() => ({ strategy: "owner_wins" }));
    mkdirSync(join(s.folder, "drafts"));
    const call = remove(s, s.sessionOf("high"), "drafts");
    const targets = call.targets.map((target) => ({ ...target, ends: ["entry"] as const }));
    await s.ask({ ...call, targets });
    expect(await s.holders("drafts")).toEqual([]);
  });
});
