/** Owns: hearing of the end of a stream, whoever ends it. */

/** The same bytes, with nothing read ahead; calls `ended` once when they are over or nobody takes them any more. */
export function followStream(
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
