/** Owns: sending a text part by part: one of megabytes stops the thread where it is put together and encoded. */

const ENCODER = new TextEncoder();

/** Returns how many bytes the parts of a text have in UTF-8 together. */
export function countBytes(parts: readonly string[]): number {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0);
}

/** Returns a stream of the parts of a text in UTF-8, which encodes one part whenever it is read. */
export function streamParts(parts: readonly string[]): ReadableStream<Uint8Array> {
  const left = parts.values();
  return new ReadableStream({
    pull: (controller) => {
      const part = left.next();
      if (part.done === true) controller.close();
      else controller.enqueue(ENCODER.encode(part.value));
    },
  });
}
