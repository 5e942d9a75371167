/** Owns: which patterns of policies hold for a file that a symbolic link leads to. */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { requireRefused, write } from "./arbiter-calls.ts";
import {
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
