/**
 * Owns: that the author's side runs with nothing but its own folder, from a copy of its own, and that the example plugin's test
 * passes so. Node itself runs the copies, as it runs a plugin.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
let folder = "";

/** The package as an author has it, as far as hooks go: a folder with its own copy, and nothing beside it. */
function copyInto(name: string): string {
  const copy = join(folder, name);
  cpSync(join(ROOT, "src/plugins/hooks"), join(copy, "hooks"), { recursive: true });
  const exports = { "./hooks": "./hooks/hooks.ts", "./testing": "./hooks/testing.ts" };
  const manifest = { name: "openclaw-coordination", version: "0.1.0", type: "module", exports };
  writeFileSync(join(copy, "package.json"), JSON.stringify(manifest));
  return copy;
}

function run(cwd: string, ...args: readonly string[]): string {
  return execFileSync(process.execPath, args, { cwd, encoding: "utf8", env: { PATH: process.env["PATH"] } });
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hooks-standalone-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a copy of the author's side, alone in a folder", () => {
  it("registers hooks that another copy asks", () => {
    copyInto("theirs");
    copyInto("ours");
    const script = `
      import { registerCoordinationHooks } from "./theirs/hooks/hooks.ts";
      import { createHookHost } from "./ours/hooks/hook-host.ts";
      import { createManualClock } from "./ours/hooks/manual-clock.ts";
      import { sampleContest } from "./ours/hooks/sample-inputs.ts";
      const logger = { debug() {}, info() {}, warn() {}, error() {} };
      const host = createHookHost({ clock: createManualClock(0).clock, logger });
      const before = host.hasAny("arbitrate");
      const api = { id: "theirs", logger };
      registerCoordinationHooks(api, { arbitrate: () => ({ award: "holder", reason: "of another copy" }) });
      console.log(JSON.stringify([before, await host.arbitrate(sampleContest())]));`;
    writeFileSync(join(folder, "script.mjs"), script);
    const ruling = { award: "holder", reason: "of another copy", plugin: "theirs" };
    expect(JSON.parse(run(folder, "script.mjs"))).toEqual([false, ruling]);
  });

  it("is all that the example plugin's own test needs", () => {
    const example = join(folder, "example");
    cpSync(join(ROOT, "examples/hook-plugin"), example, { recursive: true });
    mkdirSync(join(example, "node_modules"), { recursive: true });
    // Node strips no types below node_modules, and looks at where a link leads.
    symlinkSync(copyInto("package"), join(example, "node_modules/openclaw-coordination"), "dir");
    const manifest: unknown = JSON.parse(readFileSync(join(example, "package.json"), "utf8"));
    const { scripts } = manifest as { readonly scripts: { readonly test: string } };
    const [program, ...args] = scripts.test.split(" ");
    expect(program).toBe("node");
    const report = run(example, "--test-reporter=tap", ...args);
    expect(report).toContain("# pass 7");
    expect(report).toContain("# fail 0");
  });
});
