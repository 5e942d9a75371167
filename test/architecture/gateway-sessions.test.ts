/** Owns: that files of gateway tests, which hand their gateways on, name their owners' sessions each in their own way. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const FOLDER = join(import.meta.dirname, "..", "e2e");
const NAMES = [
  /agent:main:([a-z0-9-]+)["`]/gu,
  /\b(?:begin|holdResult|ownerOf|planOf|run|runDoubted|sendChat|spawnDoubting|spawnFrom|waitForEnd|waitForQuestion)\((?:stage, |there, )?"([a-z0-9-]+)"/gu,
  /\blabel = "([a-z0-9-]+)"/gu,
];

function listSessions(file: string): Set<string> {
  const text = readFileSync(join(FOLDER, file), "utf8");
  return new Set(NAMES.flatMap((name) => [...text.matchAll(name)].map(([, session = ""]) => session)));
}

it("no two files of gateway tests share a session", () => {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".test.ts"));
  const named = files.flatMap((file) => [...listSessions(file)].map((session) => ({ session, file })));
  expect(named.length).toBeGreaterThan(100);
  const shared = Object.entries(Object.groupBy(named, ({ session }) => session))
    .filter(([, users = []]) => users.length > 1)
    .map(([session, users = []]) => `${session}: ${users.map(({ file }) => file).join(", ")}`);
  expect(shared).toEqual([]);
});
