/** Owns: `cancel` and `plan cancel`. */
import type { MethodName } from "../../openclaw/host/method-declarations.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { addRequest } from "./request-command.ts";

export function addCancel(parent: CommandGroup, host: CliHost): void {
  addCancelOf(parent, host, {
    path: "cancel",
    method: "coordination.cancel",
    description: "Cancel a coordination or one of its steps, with every running child",
  });
}

export function addPlanCancel(parent: CommandGroup, host: CliHost): void {
  addCancelOf(parent, host, {
    path: "plan cancel",
    method: "coordination.plan.cancel",
    description: "Cancel a running plan or one of its steps, with every running child",
  });
}

function addCancelOf(
  parent: CommandGroup,
  host: CliHost,
  {
    path,
    method,
    description,
  }: { readonly path: string; readonly method: MethodName; readonly description: string },
): void {
  addRequest(parent, host, {
    name: "cancel",
    method,
    description,
    step: "only this step; what depends on it is skipped",
    examples: [`${path} release-notes-2026-11`, `${path} release-notes draft-long`, `${path} co-1f0c --json`],
    done: "cancelling",
    again: "already cancelling",
  });
}
