/** Owns: JavaScript's patterns in an engine whose time is linear in the text. The plan compiler refuses patterns that it cannot do. */
import { RE2JS } from "re2js";
import type { WorkMeter } from "./work-meter.ts";

export interface LinearPattern {
  /** In instructions of 80 bytes. */
  readonly size: number;
  test(text: string): boolean;
  /** Gives back the memory that matching took. */
  forget(): void;
  /** Ajv tells patterns apart by it. */
  toString(): string;
}

/** The characters of `.`, `\s` and `\S` in JavaScript; in RE2 they are fewer. */
const DOT = "[^\\n\\r\\x{2028}\\x{2029}]";
const SPACE =
  "\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
const NO_SPACE =
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}" +
  "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";

/**
 * Compiles a regular expression for tests in linear time, which spend work of the meter. @throws Error where the
 * pattern is none, or one that needs backtracking.
 */
export function createLinearPattern(source: string, meter: WorkMeter): LinearPattern {
  const compiled = RE2JS.compile(translateToRe2(RE2JS.translateRegExp(source)));
  const size = compiled.programSize();
  let isWarm = false;
  return {
    size,
    test: (text) => {
      meter.spendOnPattern((text.length + 1) * size);
      isWarm = true;
      return compiled.test(text);
    },
    forget: () => {
      if (isWarm) compiled.reset();
      isWarm = false;
    },
    toString: () => source,
  };
}

/** Replaces `.`, `\s` and `\S` in a pattern by the characters that JavaScript means. */
function translateToRe2(pattern: string): string {
  let isInClass = false;
  return pattern.replace(/\\.|[.[\]]/gsu, (part) => {
    if (isInClass) {
      isInClass = part !== "]";
      return translateInClass(part);
    }
    isInClass = part === "[";
    return translateOutOfClass(part);
  });
}

function translateInClass(part: string): string {
  if (part === "\\s") return SPACE;
  if (part === "\\S") return NO_SPACE;
  // [[:alpha:] would be a class of its own.
  return part === "[" ? "\\[" : part;
}

function translateOutOfClass(part: string): string {
  if (part === "\\s") return `[${SPACE}]`;
  if (part === "\\S") return `[${NO_SPACE}]`;
  return part === "." ? DOT : part;
}
