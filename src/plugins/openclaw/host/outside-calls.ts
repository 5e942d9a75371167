/**
 * Owns: leaving the async context of the call in which the host reached us.
 *
 * Work that a gateway method or a tool begins goes on when the call is over, and the host refuses calls of its API from the
 * context of a client that is gone ("Gateway client authority closed"): a plan that was submitted by a command would hang. The
 * context of the first load of the plugin in this process belongs to nobody; every module instance uses that one.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { shareInProcess } from "./share-in-process.ts";

/** Runs a call outside of the async context that it is made in. */
type ContextExit = <T>(work: () => T) => T;

const accessLeave = shareInProcess<ContextExit>("outside-calls", () => AsyncLocalStorage.snapshot());
const leave = accessLeave();

/**
 * Runs `work` at once, outside of the async context in which the host called us, and returns its result; all that it
 * begins stays outside, too.
 */
export function runOutsideCalls<T>(work: () => T): T {
  return leave(work);
}
