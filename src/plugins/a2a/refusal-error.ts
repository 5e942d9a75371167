/** Owns: the host's refusals as errors of the A2A protocol. */
import {
  RequestMalformedError,
  TaskNotFoundError,
  UnsupportedOperationError,
  type A2AError,
} from "@a2a-js/sdk/errors";
import type { HostRefusal } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";

/**
 * Creates the A2A error that tells a client that the workflow host refused its request: not found, malformed, or
 * unsupported.
 */
export function createRefusalError({ code, message }: HostRefusal): A2AError {
  if (code === "not_found") return new TaskNotFoundError("There is no such task.");
  if (code === "validation_error" || code === "workflow_not_found") return new RequestMalformedError(message);
  return new UnsupportedOperationError(`${message} (${code})`);
}

/** Throws the A2A error that tells a client that the workflow host refused its request. @throws A2AError always */
export function throwRefusal(refusal: HostRefusal): never {
  throw createRefusalError(refusal);
}
