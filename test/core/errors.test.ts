import { describe, expect, it } from "vitest";
import {
  CoordinationError,
  ERROR_CODES,
  assertInvariant,
  InvariantViolation,
  isCoordinationError,
  assertNever,
  type ErrorCode,
} from "../../src/agents/coordination/contracts/errors.ts";

const codes = Object.keys(ERROR_CODES) as ErrorCode[];

describe("error codes", () => {
  it.each(codes)("%s has one recovery, and says what happened and what to do", (code) => {
    const { recovery, summary, advice } = ERROR_CODES[code];
    expect(recovery).toMatch(/^[a-z]+(-[a-z]+)*$/u);
    expect(summary).toMatch(/^[a-z].*[^.]$/u);
    expect(advice).toMatch(/^[A-Z].*\.$/u);
    const error = new CoordinationError(code, "detail", { cause: "why" });
    expect(error).toMatchObject({
      name: "CoordinationError",
      code,
      recovery,
      advice,
      message: "detail",
      cause: "why",
    });
  });
});

describe("isCoordinationError", () => {
  it("knows its own, also from another copy of the module", () => {
    expect(isCoordinationError(new CoordinationError("LEDGER_BUSY", "busy"))).toBe(true);
    expect(isCoordinationError(Object.assign(new Error("busy"), { code: "LEDGER_BUSY" }))).toBe(true);
  });

  it.each(["SQLITE_BUSY", "toString", "constructor", "__proto__", undefined, 5])(
    "refuses the code %j",
    (code) => {
      expect(isCoordinationError(Object.assign(new Error("x"), { code }))).toBe(false);
    },
  );

  it.each([undefined, null, "LEDGER_BUSY", { code: "LEDGER_BUSY" }])(
    "refuses %j, which is no error",
    (value) => {
      expect(isCoordinationError(value)).toBe(false);
    },
  );
});

describe("a broken invariant", () => {
  it("is a bug to report and names the rule", () => {
    expect(() => {
      assertInvariant(false, "L2: gap");
    }).toThrow(
      expect.objectContaining({ code: "INVARIANT_VIOLATED", recovery: "report-bug", message: "L2: gap" }),
    );
    expect(() => {
      assertInvariant(true, "never");
    }).not.toThrow();
  });

  it("is also what an unhandled case is", () => {
    expect(() => assertNever({ type: "new" } as never, "fact")).toThrow('unhandled fact: {"type":"new"}');
    expect(() => assertNever("x" as never, "fact")).toThrow(InvariantViolation);
  });
});
