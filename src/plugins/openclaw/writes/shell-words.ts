/** Owns: cutting a command line into words, as a POSIX shell does before it expands anything. */

export interface ShellWord {
  /** Where it begins and ends in the command. */
  readonly start: number;
  readonly end: number;
  /** Without quotes. */
  readonly text: string;
  /** The shell puts something else in its place: a variable, files that fit a pattern, a home folder. */
  readonly isExpanded: boolean;
  /** True where the shell cuts the value of a variable or a command into words of its own: nothing quotes it. */
  readonly isSplit: boolean;
}

/** The words of one simple command, with the name of its program first. */
export type SimpleCommand = readonly ShellWord[];

const ENDS_COMMAND = new Set([";", "&", "|", "\n", "(", ")"]);
const EXPANDED = new Set(["$", "`", "*", "?", "[", "{", "~", "<", ">"]);
const NAMES_VARIABLE = /[\w{(@*!?#'"]/u;
const ASSIGNMENT = /^[A-Za-z_]\w*=/u;

/**
 * Returns the simple commands of a command line, each as its words without assignments ahead of them. Takes time that
 * grows with the command.
 */
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

/** Leaves out the assignments of variables before the name of the program. */
function skipAssignments(words: readonly ShellWord[]): SimpleCommand {
  const first = words.findIndex(({ text }) => !ASSIGNMENT.test(text));
  return first === -1 ? [] : words.slice(first);
}

function readWord(command: string, start: number): ShellWord {
  const word = { text: "", quote: "", isExpanded: false, isSplit: false };
  let at = start;
  for (; at < command.length && !isWordEnd(command.charAt(at), word.quote); at += 1) {
    const character = command.charAt(at);
    if (word.quote === "" && isSubstitutedHere(command, at)) word.isSplit = true;
    if (character === "\\" && word.quote !== "'") {
      at += 1;
      word.text += command.charAt(at);
    } else readCharacter(word, character);
  }
  const { text, isExpanded, isSplit } = word;
  return { start, end: at, text, isExpanded, isSplit };
}

/** True where a variable or a command begins whose value the shell puts in its place. */
function isSubstitutedHere(command: string, at: number): boolean {
  const character = command.charAt(at);
  return character === "`" || (character === "$" && NAMES_VARIABLE.test(command.charAt(at + 1)));
}

function isWordEnd(character: string, quote: string): boolean {
  return quote === "" && (ENDS_COMMAND.has(character) || /\s/u.test(character));
}

/** Adds a character to the word, or opens or closes a quote with it. */
function readCharacter(word: { text: string; quote: string; isExpanded: boolean }, character: string): void {
  if (character === word.quote) word.quote = "";
  else if (word.quote === "" && (character === "'" || character === '"')) word.quote = character;
  else {
    if (isExpandedHere(character, word.quote)) word.isExpanded = true;
    word.text += character;
  }
}

function isExpandedHere(character: string, quote: string): boolean {
  if (quote === "'") return false;
  return quote === '"' ? character === "$" || character === "`" : EXPANDED.has(character);
}
