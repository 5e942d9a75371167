/** Owns: `retry`. */
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { addRequest } from "./request-command.ts";

export function addRetry(parent: CommandGroup, host: CliHost): void {
  addRequest(parent, host, {
    name: "retry",
    method: "coordination.retry",
    description: "Grant a blocked step one attempt more, or let a plan go on that stopped at its budget",
    step: "only this step; without it, every step that waits for people or for its next attempt",
    examples: ["retry release-notes-2026-11", "retry release-notes draft-long", "retry co-1f0c --json"],
    done: "trying again:",
    again: "already trying again:",
    isAnswer: true,
  });
}
