/** Owns: hearing of the end of a stream, whoever ends it. */

/**
 * Returns a stream of the same bytes, and calls `ended` once when these are over, fail, or nobody takes them any more.
 * Nothing is read ahead.
 */
export function watchStreamEnd(
  stream: ReadableStream<Uint8Array>,
  ended: () => void,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  reader.closed.then(ended, ended);
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const chunk = await reader.read();
        if (chunk.done) controller.close();
        else controller.enqueue(chunk.value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
