/** Owns: words as arguments of a command that people copy into a shell: each of them is one word there and nothing else. */

/** Returns a word as it is typed into a shell: in single quotes unless it is plain. */
export function quoteShellWord(word: string): string {
  return /^[\w.:@/-]+$/u.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/**
 * Returns the words quoted as they are typed behind a command in a shell: after `--` where one of them would be taken
 * for an option.
 */
export function formatShellArguments(...words: readonly string[]): string {
  const quoted = words.map(quoteShellWord).join(" ");
  return words.some((word) => word.startsWith("-")) ? `-- ${quoted}` : quoted;
}
