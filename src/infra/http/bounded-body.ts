/** Owns: the body of an answer as a web stream, of bounded size, read no faster than it is asked for. */
import type { IncomingMessage } from "node:http";
import { OutboundError } from "./outbound-error.ts";

export interface BodyBounds {
  readonly bytesMax: number;
  /** Why the exchange was ended from here, where it was. */
  readonly endedBy: () => OutboundError | undefined;
  readonly onBroken: (error: OutboundError) => void;
}

/** Its errors are `OutboundError`s. */
export function boundedBody(
  response: IncomingMessage,
  { bytesMax, endedBy, onBroken }: BodyBounds,
): ReadableStream<Uint8Array> {
  let bytes = 0;
  let isOver = false;
  const over = (finish: () => void): void => {
    if (isOver) return;
    isOver = true;
    finish();
  };
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const fail = (error: OutboundError): void => {
          over(() => {
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
        response.once("end", () => over(() => controller.close()));
        response.once("error", () => fail(endedBy() ?? broken()));
        response.once("close", () => fail(endedBy() ?? broken()));
        response.pause();
      },
      pull: () => void response.resume(),
      cancel: () => {
        over(() => undefined);
        response.destroy();
      },
    },
    { highWaterMark: 1 },
  );
}

function broken(): OutboundError {
  return new OutboundError("unreachable", "The answer broke off.");
}
