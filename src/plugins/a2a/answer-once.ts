/**
 * Owns: that a message which answers a task answers one question (N1): sent again by its id, it is not taken for the answer to
 * the next one. A process that dies after the answer and before that is kept leaves a minute in which the question may be
 * answered, and the message still counts as new after it.
 */
import { hash } from "node:crypto";
import type { Message } from "@a2a-js/sdk";
import { A2AError, RequestMalformedError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
import { addMs, type CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { RequestKey } from "../../agents/coordination/ports/workflow-store.ts";
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { formatCanonicalJson } from "../../agents/coordination/std/canonical-json.ts";
import { HTTP_BOUNDS } from "../openwop/http/http-bounds.ts";
import type { A2aParts } from "./a2a-parts.ts";

interface Answering {
  readonly caller: Caller;
  readonly message: Message;
  /** The message as it is read. */
  readonly content: unknown;
}

/** Gives the answer by `answer`, unless the message was taken before. `answer` throws where the host refuses it. */
export async function answerOnce(
  { host, clock }: A2aParts,
  { caller, message, content }: Answering,
  answer: () => Promise<void>,
): Promise<void> {
  const at: RequestKey = {
    tenant: caller.tenant,
    endpoint: "A2A answer",
    key: hash("sha256", formatCanonicalJson([caller.principal, message.messageId])),
  };
  const now = clock.now();
  const leaseUntilMs = addMs(now, HTTP_BOUNDS.requestLeaseMs);
  const begun = await host.requests.begin({
    ...at,
    digest: hash("sha256", formatCanonicalJson([message.taskId, content])),
    runId: message.taskId as CoordinationId,
    now,
    leaseUntilMs,
  });
  if (begun.kind === "answered") return;
  if (begun.kind === "mismatch")
    throw new RequestMalformedError("message.messageId: another message had this id before");
  if (begun.kind === "in_flight")
    throw new UnsupportedOperationError("The same message is being worked on: send it again in a moment.");
  try {
    await answer();
  } catch (error) {
    // A failure leaves open whether the answer was given: its id stays taken by what the message says.
    const leased = { ...at, leaseUntilMs };
    await (error instanceof A2AError ? host.requests.release(leased) : host.requests.lapse(leased));
    throw error;
  }
  await host.requests.finish(at, { status: 200, body: "{}" });
}
