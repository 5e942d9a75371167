import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 100);

const names = fc.constantFrom("a", "b", "c", "d");
const steps = fc.array(
  fc.oneof({ weight: 3, arbitrary: names }, { weight: 1, arbitrary: fc.constant("..") }),
  {
    minLength: 1,
    maxLength: 4,
  },
);

const entries = fc.array(
  fc.record({
    at: fc.array(names, { minLength: 1, maxLength: 3 }),
    subject: fc.oneof(
      fc.constantFrom("folder" as const, "file" as const),
      fc.record({ isAbsolute: fc.boolean(), link: steps }),
    ),
  }),
  { maxLength: 12 },
);

type Entries = typeof entries extends fc.Arbitrary<infer T> ? T : never;

/** Entries that cannot be made, because of earlier ones, are left out. */
function make(folder: TempFolder, all: Entries): void {
  for (const { at, subject } of all) {
    const path = folder.file(at.join("/"));
    try {
      mkdirSync(dirname(path), { recursive: true });
      if (subject === "folder") mkdirSync(path);
      else if (subject === "file") writeFileSync(path, "", { flag: "wx" });
      else symlinkSync((subject.isAbsolute ? `${folder.path}/` : "") + subject.link.join("/"), path);
    } catch {
      continue;
    }
  }
}

/** The answer of the system itself: where the path leads, or why nowhere. */
function askSystem(path: string): { readonly path: string } | { readonly code: unknown } {
  try {
    return { path: realpathSync.native(path) };
  } catch (error) {
    return { code: error instanceof Error && "code" in error ? error.code : error };
  }
}

describe("for all trees of folders, files and links", () => {
  it("a resource is where the system says that the path leads, and none for a loop or a file in the way", async () => {
    const files = createRealFiles();
    const questions = fc.array(fc.array(names, { maxLength: 4 }), { minLength: 5, maxLength: 20 });
    const seen = { path: 0, missing: 0, nowhere: 0 };
    await fc.assert(
      fc.asyncProperty(entries, questions, async (all, paths) => {
        using folder = createTempFolder();
        make(folder, all);
        for (const path of paths) {
          const resource = await files.locate(path.join("/") || ".", folder.path);
          // The second look may be shorter, for what was found out about folders.
          expect(await files.locate(path.join("/") || ".", folder.path)).toBe(resource);
          const statement = askSystem(folder.file(path.join("/")));
          if ("path" in statement) {
            seen.path += 1;
            expect(resource?.toLowerCase()).toBe(`file:${statement.path}`.toLowerCase());
          } else if (statement.code === "ENOENT") {
            seen.missing += 1;
          } else {
            seen.nowhere += 1;
            expect(resource).toBeUndefined();
          }
        }
      }),
      { numRuns: RUNS },
    );
    expect(Math.min(seen.path, seen.missing, seen.nowhere)).toBeGreaterThan(RUNS / 10);
  });

  it("what is made at a resource is what its path leads to then, by every path to it", async () => {
    const files = createRealFiles();
    let made = 0;
    await fc.assert(
      fc.asyncProperty(entries, fc.array(names, { minLength: 1, maxLength: 4 }), async (all, path) => {
        using folder = createTempFolder();
        make(folder, all);
        const resource = await files.locate(path.join("/"), folder.path);
        if (resource === undefined || (await files.look(resource)).kind !== "absent") return;
        const place = resource.slice("file:".length);
        mkdirSync(dirname(place), { recursive: true });
        writeFileSync(place, "made");
        made += 1;
        expect(await files.locate(path.join("/"), folder.path)).toBe(resource);
        expect(askSystem(folder.file(path.join("/")))).toEqual({ path: place });
        expect(await files.look(resource)).toMatchObject({ kind: "text", text: "made" });
      }),
      { numRuns: RUNS },
    );
    expect(made).toBeGreaterThan(RUNS / 10);
  });
});
