/** Owns: when two file names are the same to a file system that does not tell upper from lower case. */

/**
 * One spelling for names that a file system without upper and lower case takes for the same. Letter by letter: what
 * `toLowerCase` makes of a text depends on where in a word a sigma stands, and may be longer.
 */
export function foldName(name: string): string {
  return Array.from(name.normalize("NFC"), foldLetter).join("").normalize("NFC");
}

function foldLetter(letter: string): string {
  if (letter === "ς") return "σ";
  const lower = letter.toLowerCase();
  return lower.length === letter.length ? lower : letter;
}
