/**
 * Owns: the seed of every property, so that a test plays the same histories in every run, and others than its neighbours.
 * `PROPERTY_SEED=<n>` plays others, `npm run explore` ever new ones. A test that names a seed of its own keeps it.
 */
import fc from "fast-check";
import { beforeEach } from "vitest";

const run = Number(process.env["PROPERTY_SEED"]);

beforeEach(({ task }) => {
  fc.configureGlobal({ seed: seedOf(task.fullTestName) });
});

/** FNV-1a. */
function seedOf(test: string): number {
  let mixed = 0x811c9dc5 ^ run;
  for (const unit of test) mixed = Math.imul(mixed ^ (unit.codePointAt(0) ?? 0), 0x01000193);
  return mixed | 0;
}
