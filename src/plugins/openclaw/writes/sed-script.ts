/**
 * Owns: which arguments of `sed` are scripts that may write a file or run a command. A script is taken for harmless only
 * where all of it is understood; names of files are no scripts.
 */
import type { ShellWord } from "./shell-words.ts";

/** A script of `sed`, and the argument that has it. */
interface SedScript {
  /** The argument that has it. */
  readonly word: ShellWord;
  readonly text: string;
}

/**
 * Lists the words among the arguments of `sed` that are scripts not known to be harmless, so that they may write
 * files.
 */
export function listWritingScripts(args: readonly ShellWord[]): readonly ShellWord[] {
  const end = args.findIndex(({ text }) => text === "--");
  const { scripts, operands } = separateScripts(end === -1 ? args : args.slice(0, end));
  if (end !== -1) operands.push(...args.slice(end + 1));
  // The suffix of BSD's `-i ''` is no script.
  const first = operands.find(({ text }) => text !== "");
  const read = scripts ?? (first ? [{ word: first, text: first.text }] : []);
  return read.filter(({ text }) => !isHarmlessScript(text)).map(({ word }) => word);
}

/** The arguments of `sed`, by scripts and files. */
interface SedArguments {
  /** Absent where no option has one: then the first operand is the script. */
  readonly scripts: readonly SedScript[] | undefined;
  readonly operands: ShellWord[];
}

function separateScripts(args: readonly ShellWord[]): SedArguments {
  const scripts: SedScript[] = [];
  const operands: ShellWord[] = [];
  let hasScript = false;
  let taking: string | undefined;
  for (const word of args) {
    const option = taking === undefined ? readOption(word.text) : { letter: taking, value: word.text };
    taking = undefined;
    if (!option) {
      if (!/^-./su.test(word.text)) operands.push(word);
    } else if (option.value === undefined) taking = option.letter;
    else {
      if (option.letter !== "l") hasScript = true;
      if (option.letter === "e") scripts.push({ word, text: option.value });
    }
  }
  return { scripts: hasScript ? scripts : undefined, operands };
}

/** `-e`, `-f` and `-l`, by their long names too, alone or behind other letters (`-ne`). `--follow-symlinks` has no value. */
const OPTION = /^-(?:-(?<long>[efl])(?!o)[a-z-]*(?:=|$)|(?!-)[^efl]*(?<short>[efl]))(?<value>.*)$/su;

/** Reads an option that has a value, which is absent where it is the next word. */
function readOption(text: string): { readonly letter: string; readonly value?: string } | undefined {
  const groups = OPTION.exec(text)?.groups;
  if (!groups) return undefined;
  const letter = groups["long"] ?? groups["short"] ?? "";
  const { value = "" } = groups;
  return { letter, ...((value !== "" || text.endsWith("=")) && { value }) };
}

const END = String.raw`(?=[^\S\n]*(?:[;}#\n]|$))`;
/** A text between two marks, with the mark behind a backslash within it. */
const PATTERN = String.raw`(?<pattern>(?:\\.|(?!\k<mark>)[^\\\n])*)\k<mark>`;
const MARKED = String.raw`(?<mark>[^\\\n])${PATTERN}(?:\\.|(?!\k<mark>)[^\\\n])*\k<mark>`;
const MATCHING = String.raw`(?:(?<mark>\/)|\\(?<other>[^\\\n]))`;

const PLACES = /\d+(?:~\d+)?|\$|[+~]\d+/suy;
const EXPRESSION = new RegExp(
  String.raw`${MATCHING}(?<pattern>(?:\\.|(?!\k<mark>\k<other>)[^\\\n])*)\k<mark>\k<other>[IM]*`,
  "suy",
);
const BLANKS = /[^\S\n]*/suy;
const COMMA = /,[^\S\n]*/suy;
const NEGATION = /[!\s]*/suy;
const BETWEEN = /[\s;}]*/suy;
const COMMANDS = [
  /\{/suy,
  new RegExp(`[=dDgGhHnNpPxzF]${END}`, "suy"),
  new RegExp(String.raw`[lLqQ][^\S\n]*\d*${END}`, "suy"),
  new RegExp(String.raw`[:btT][^\S\n]*\w*${END}`, "suy"),
  /[aic](?:\\.|[^\\\n])*/suy,
  /[rR#][^\n]*/suy,
  new RegExp(`s${MARKED}[gpiIMm0-9]*${END}`, "suy"),
  new RegExp(`y${MARKED}${END}`, "suy"),
];

/** True where every command of the script is known, and none writes or runs something. */
function isHarmlessScript(script: string): boolean {
  let at = 0;
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const found = pattern.exec(script);
    if (!found || hasAmbiguousBracket(found.groups?.["pattern"] ?? "")) return false;
    at = pattern.lastIndex;
    return true;
  };
  for (take(BETWEEN); at < script.length; take(BETWEEN)) {
    const hasPlace = take(PLACES) || take(EXPRESSION);
    take(BLANKS);
    if (hasPlace && take(COMMA) && !take(PLACES) && !take(EXPRESSION)) return false;
    take(NEGATION);
    if (!COMMANDS.some(take)) return false;
  }
  return true;
}

/**
 * True where a pattern has a bracket that is still open where the delimiter ends the pattern: programs differ in
 * whether the pattern ends there.
 */
function hasAmbiguousBracket(pattern: string): boolean {
  const brackets = pattern.replace(/\\./gsu, "").match(/\[\^?\]?[^\]]*\]?/gu) ?? [];
  return brackets.some((bracket) => !/\[\^?\]?[^\]]*\]$/u.test(bracket) || /^\[\^?\]$/u.test(bracket));
}
