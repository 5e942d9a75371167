/** Owns: naming a resource that is no file, such as a session or a queue, as what a tool call would change. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";

/**
 * Returns the write target of a session, a queue or a plugin's resource, in the spelling of plans; `undefined` for a
 * name that is too long. Messages to it are added to those that are there.
 */
export function createResourceTarget(name: string): WriteTarget | undefined {
  const resource = name.normalize("NFC");
  return resource.length <= BOUNDS.resourceCharsMax ? { at: { resource }, replaces: false } : undefined;
}
