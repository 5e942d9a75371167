/**
 * Owns: text of others as it may stand in a chat. The host reads instructions of its own out of replies: files to attach, images to
 * fetch, messages to reply to. What a model, an agent or a tool wrote must not give it any.
 */

/** One line without control characters, of bounded length. */
export function short(text: string, charsMax = 300): string {
  return cut(plain(text).replace(/\s+/gu, " ").trim(), charsMax);
}

/** Several lines of it. */
export function lines(text: string, charsMax: number): string {
  return cut(plain(text).trim(), charsMax);
}

function plain(text: string): string {
  return (
    text
      .toWellFormed()
      .replace(/\r\n?/gu, "\n")
      // Those that bring no sign of their own, and turn the direction of others; joined emojis stay.
      .replace(/(?![\u200d\n\t])[\p{Cc}\p{Cf}\p{Co}]/gu, "")
      .replace(/\bMEDIA:/giu, (said) => `${said.slice(0, -1)} :`)
      .replaceAll("[[", "[ [")
      .replaceAll("![", "! [")
  );
}

function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}
