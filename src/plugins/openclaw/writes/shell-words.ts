/** Owns: cutting a command line into words, as a POSIX shell does before it expands anything. */

export interface ShellWord {
  /** Where it begins and ends in the command. */
  readonly start: number;
  readonly end: number;
  /** Without quotes. */
  readonly text: string;
  /** The shell puts something else in its place: a variable, files that fit a pattern, a home folder. */
  readonly isExpanded: boolean;
}

/** The words of one simple command, with the name of its program first. */
export type SimpleCommand = readonly ShellWord[];

const ENDS_COMMAND = new Set([";", "&", "|", "\n", "(", ")"]);
const EXPANDED = new Set(["$", "`", "*", "?", "[", "{", "~", "<", ">"]);
const ASSIGNMENT = /^[A-Za-z_]\w*=/u;

/** Lists the simple commands of a command line. Takes time that grows with the command. */
export function listSimpleCommands(command: string): SimpleCommand[] {
  const commands: ShellWord[][] = [[]];
  let at = 0;
  while (at < command.length) {
    const character = command.charAt(at);
    if (ENDS_COMMAND.has(character)) {
      commands.push([]);
      at += 1;
    } else if (/\s/u.test(character)) at += 1;
    else {
      const word = readWord(command, at);
      commands.at(-1)?.push(word);
      at = word.end;
    }
  }
  return commands.map(skipAssignments).filter((words) => words.length > 0);
}

function skipAssignments(words: readonly ShellWord[]): SimpleCommand {
  const first = words.findIndex(({ text }) => !ASSIGNMENT.test(text));
  return first === -1 ? [] : words.slice(first);
}

function readWord(command: string, start: number): ShellWord {
  let text = "";
  let isExpanded = false;
  let quote = "";
  let at = start;
  for (; at < command.length; at += 1) {
    const character = command.charAt(at);
    if (quote === "" && (ENDS_COMMAND.has(character) || /\s/u.test(character))) break;
    if (character === quote) quote = "";
    else if (quote === "" && (character === "'" || character === '"')) quote = character;
    else if (character === "\\" && quote !== "'") {
      at += 1;
      text += command.charAt(at);
    } else {
      if (isExpandedHere(character, quote)) isExpanded = true;
      text += character;
    }
  }
  return { start, end: at, text, isExpanded };
}

function isExpandedHere(character: string, quote: string): boolean {
  if (quote === "'") return false;
  return quote === '"' ? character === "$" || character === "`" : EXPANDED.has(character);
}
