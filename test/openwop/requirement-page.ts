/** Owns: docs/openwop-requirements.md, as it follows from requirements.json and the names of the tests. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Requirement {
  readonly id: string;
  readonly source: string;
  /** Absent where the test's name says it: of the scenarios of the protocol's own suite. */
  readonly requirement?: string;
}

export interface RequirementGroup {
  readonly title: string;
  readonly note?: string;
  readonly requirements: readonly Requirement[];
}

const TESTS = import.meta.dirname;
/** The chat is OpenClaw's, so what is demanded of it is tested with its gateway. */
const CHATS = ["../plugin/chat-mention.test.ts", "../e2e/openwop-mention.test.ts", "../e2e/crash.test.ts"];
const COLUMNS = 118;

const HEADER = `# OpenWOP: requirements and tests

This page is generated from \`test/openwop/requirements.json\` and the names of the tests by \`npm run requirements\`. Do
not edit it.

Every test validates the events that it reads against the official schemas, where these lie beside the repository.
"MAE" is multi-agent-execution.md; "brief" and "agents" are this project's reading of the public specification and of
its suite. The tests are in \`test/openwop/levels-*.test.ts\`. Each entry is the id, the source, the requirement and the
name of the test.
`;

/** Returns the requirements, a group for each level of the protocol. */
export function readRequirements(): RequirementGroup[] {
  return JSON.parse(readFileSync(join(TESTS, "requirements.json"), "utf8")) as RequirementGroup[];
}

/** Returns the name of the test of each id, without the id. */
export function readTestNames(): Map<string, string> {
  const files = readdirSync(TESTS).filter((name) => /^levels-.*\.test\.ts$/u.test(name));
  const names = [
    ...files.flatMap((name) => listMatches(name, /\bit\(\s*"([^"]+)"/gu)),
    ...CHATS.flatMap((name) => listMatches(name, /(?:\bit|\))\(\s*"(LM-[^"]+)"/gu)),
  ];
  return new Map(names.map((name) => [name.split(" ", 1)[0] ?? "", name.slice(name.indexOf(" ") + 1)]));
}

function listMatches(file: string, pattern: RegExp): string[] {
  const text = readFileSync(join(TESTS, file), "utf8");
  return [...text.matchAll(pattern)].map(([, match = ""]) => match);
}

/** Returns the whole page. */
export function formatRequirementPage(): string {
  const names = readTestNames();
  const sections = readRequirements().map(({ title, note, requirements }) => {
    const entries = requirements.map((entry) => formatEntry(entry, names.get(entry.id) ?? "no test"));
    return [`## ${title}`, ...(note ? [wrap(note, "")] : []), entries.join("\n")].join("\n\n");
  });
  return `${[HEADER.trim(), ...sections].join("\n\n")}\n`;
}

function formatEntry({ id, source, requirement }: Requirement, test: string): string {
  const lines = [`- **\`${id}\`** ${source}`, ...(requirement ? [requirement] : []), `Test: ${test}`];
  return lines
    .map((line, index) => wrap(index === 0 ? line : `  - ${line}`, index === 0 ? "  " : "    "))
    .join("\n");
}

/** Breaks a line between words where it would pass the width of the page. */
function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/ (?=\S)/u)) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (longer.length <= COLUMNS) line = longer;
    else {
      lines.push(line);
      line = `${indent}${word}`;
    }
  }
  return [...lines, line].join("\n");
}
