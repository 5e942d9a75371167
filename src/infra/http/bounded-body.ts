/** Owns: the body of an answer as a web stream, of bounded size, read no faster than it is asked for. */
import type { IncomingMessage } from "node:http";
import { OutboundError } from "./outbound-error.ts";

export interface BodyBounds {
  readonly bytesMax: number;
  /** Why the exchange was ended from here, where it was. */
  readonly endedBy: () => OutboundError | undefined;
  readonly onBroken: (error: OutboundError) => void;
}

/**
 * Creates the stream of an HTTP answer's body, which fails with an `OutboundError` where it is larger than `bytesMax`
 * or the connection breaks; `onBroken` is then told.
 */
export function createBoundedBody(
  response: IncomingMessage,
  { bytesMax, endedBy, onBroken }: BodyBounds,
): ReadableStream<Uint8Array> {
  let bytes = 0;
  let isOver = false;
  const finishOnce = (finish: () => void): void => {
    if (isOver) return;
    isOver = true;
    finish();
  };
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const fail = (error: OutboundError): void => {
          finishOnce(() => {
            controller.error(error);
            onBroken(error);
          });
          response.destroy();
        };
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > bytesMax)
            fail(new OutboundError("too_large", `The answer is larger than ${bytesMax} bytes.`));
          if (isOver) return;
          controller.enqueue(new Uint8Array(chunk));
          if ((controller.desiredSize ?? 0) <= 0) response.pause();
        });
        response.once("end", () => finishOnce(() => controller.close()));
        response.once("error", () => fail(endedBy() ?? createBrokenError()));
        response.once("close", () => fail(endedBy() ?? createBrokenError()));
        response.pause();
      },
      pull: () => void response.resume(),
      cancel: () => {
        finishOnce(() => undefined);
        response.destroy();
      },
    },
    { highWaterMark: 1 },
  );
}

function createBrokenError(): OutboundError {
  return new OutboundError("unreachable", "The answer broke off.");
}
