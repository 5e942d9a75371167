/** Owns: reading the body of a request as text, in bounded size. */

/**
 * Returns the body of a request or an answer as text; an empty text without a body, `undefined` where it has more than
 * `bytesMax` bytes.
 */
export async function readBoundedText(
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<string | undefined> {
  if (!body) return "";
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
