import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../src/agents/coordination/contracts/errors.ts";
import { readTableRows } from "./read-tables.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/errors.md"), "utf8");

describe("docs/errors.md", () => {
  it("holds ERROR_CODES, code by code, in the same order and the same words", () => {
    const expected = Object.entries(ERROR_CODES).map(([code, { summary, recovery, advice }]) => [
      `\`${code}\``,
      summary,
      `\`${recovery}\``,
      advice,
    ]);
    expect(readTableRows(page, "code")).toEqual(expected);
  });
});
