import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { createTempFolder } from "../support/temp-ledger.ts";
import { fillLedger, HOSTILE } from "./filled-ledger.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const MAIN = join(ROOT, "src", "plugins", "cli", "main.ts");

it("writes a timeline as one file in which hostile text is text, and replaces none", async () => {
  using folder = createTempFolder();
  const ledger = join(folder.path, "ledger.sqlite");
  const file = join(folder.path, "timeline.html");
  await fillLedger(ledger);
  const args = [MAIN, "timeline", HOSTILE, "--ledger", ledger, "--html", file];
  const first = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(first.status, first.stderr).toBe(0);
  const text = readFileSync(file, "utf8");
  expect(text).not.toMatch(/<script|<img|\p{Bidi_Control}/u);
  expect(text).not.toContain("\0");
  expect(text).toContain("&lt;script&gt;");
  expect(text).toContain("[U+202E]");
  const again = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(again.status).not.toBe(0);
  expect(again.stderr).toContain("choose another name");
});

it("never turns text into markup, and sets no style attribute, anywhere in the page", () => {
  const folder = join(ROOT, "src", "plugins", "page", "ui");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  expect(files.length).toBeGreaterThan(20);
  const unsafe =
    /innerHTML|outerHTML|insertAdjacentHTML|unsafeHTML|unsafeSVG|document\.write|\sstyle=|\beval\(/u;
  expect(files.filter((name) => unsafe.test(readFileSync(join(folder, name), "utf8")))).toEqual([]);
});
