/**
 * Owns: telling a person's shell from one that a model runs commands in. It is a hurdle and no boundary: OpenClaw marks the shells of
 * its `exec` tool, and whoever runs commands there can remove the mark. Commands for people only need an agent without `exec`, or
 * with a sandbox around it.
 */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";

/**
 * Returns whether this process runs in a shell of OpenClaw's `exec` tool, where a model and not a person types the
 * commands.
 */
export function isModelShell(env: Readonly<Record<string, string | undefined>> = process.env): boolean {
  return env["OPENCLAW_SHELL"] === "exec";
}

class ModelShellRefusal extends CoordinationError {
  override get advice(): string {
    return "Ask a person to answer, from a terminal of their own or by chat.";
  }
}

/**
 * Throws where a model types the commands, because a person must; else does nothing. @throws CoordinationError
 * `REQUEST_REFUSED`
 */
export function assertNotInModelShell(): void {
  if (isModelShell())
    throw new ModelShellRefusal("REQUEST_REFUSED", "a person must answer: this is a shell of an agent");
}
