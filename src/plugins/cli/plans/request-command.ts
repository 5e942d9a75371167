/** Owns: commands that ask something of one coordination or one of its steps: `cancel`, `plan cancel` and `retry`. */
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import type { MethodName } from "../../openclaw/declarations/method-declarations.ts";
import { askByPrefix, askGateway, resolveFullId } from "../ledger/ask-gateway.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { assertNotInModelShell } from "../terminal/model-shell.ts";
import { formatPrintable } from "../terminal/printable.ts";
import {
  runCommand,
  withExamples,
  withJsonOption,
  writeJson,
  type JsonOption,
} from "../terminal/run-command.ts";

interface RequestCommand {
  readonly name: string;
  readonly method: MethodName;
  readonly description: string;
  /** The purpose of the argument `[step]`. */
  readonly step: string;
  readonly examples: readonly string[];
  /** The request in words, as in `cancelling co-1`. */
  readonly done: string;
  /** The words for a request that had been made before. */
  readonly again: string;
  /** It answers a question that was put to a person. */
  readonly isAnswer?: true;
}

const CANCEL = {
  name: "cancel",
  step: "only this step; what depends on it is skipped",
  done: "cancelling",
  again: "already cancelling",
} as const;
/** Arguments of `cancel`. */
const CANCEL_EXAMPLES = ["release-notes-2026-11", "release-notes draft-long", "co-1f0c --json"];

/** Adds the command `cancel`, which cancels a coordination or one of its steps. */
export function addCancelCommand(parent: CommandGroup, host: CliHost): void {
  addRequestCommand(parent, host, {
    ...CANCEL,
    method: "coordination.cancel",
    description: "Cancel a coordination or one of its steps, with every running child",
    examples: CANCEL_EXAMPLES.map((words) => `cancel ${words}`),
  });
}

/** Adds the command `plan cancel`, which cancels a running plan or one of its steps. */
export function addPlanCancelCommand(parent: CommandGroup, host: CliHost): void {
  addRequestCommand(parent, host, {
    ...CANCEL,
    method: "coordination.plan.cancel",
    description: "Cancel a running plan or one of its steps, with every running child",
    examples: CANCEL_EXAMPLES.map((words) => `plan cancel ${words}`),
  });
}

/**
 * Adds the command `retry`, which grants a blocked step one more attempt, or lets a plan go on that stopped at its
 * budget.
 */
export function addRetryCommand(parent: CommandGroup, host: CliHost): void {
  addRequestCommand(parent, host, {
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

/** Adds a command that asks the gateway something of a coordination or of one of its steps. */
function addRequestCommand(parent: CommandGroup, host: CliHost, request: RequestCommand): void {
  const command = withJsonOption(parent.command(request.name))
    .description(request.description)
    .argument("<id>", "the coordination's id or a unique prefix")
    .argument("[step]", request.step)
    .action((id: string, step: string | undefined, options: JsonOption) =>
      runCommand(host, options, () => sendStepRequest(host, request, { id, step, options })),
    );
  withExamples(command, host, request.examples);
}

/** Sends the request to the gateway, with the id completed where it is a prefix, and prints what came of it. */
async function sendStepRequest(
  host: CliHost,
  { method, done: sentenceDone, again, isAnswer }: RequestCommand,
  {
    id,
    step,
    options,
  }: { readonly id: string; readonly step: string | undefined; readonly options: JsonOption },
): Promise<void> {
  if (isAnswer) assertNotInModelShell();
  const askFor = async (coordinationId: string) => {
    const params = { coordinationId, ...(step !== undefined && { stepId: step }) };
    return { params, answer: await askGateway(host, method, params) };
  };
  const { params, answer } = await askByPrefix(id, askFor, () => resolveFullId(host, id));
  const { replay } = answer;
  if (options.json) {
    await writeJson(host, { ok: true, ...params, replay: replay === true });
    return;
  }
  const { coordinationId } = params;
  const target = step === undefined ? coordinationId : `step ${step} of ${coordinationId}`;
  const print = (text: string): string => formatPrintable(text, host.stdout.terminal.unicode);
  const sentence = print(`${replay === true ? again : sentenceDone} ${target}`);
  const typedId = print(formatShellArguments(coordinationId));
  await host.stdout.write(`${sentence}\nSee ${host.program} show ${typedId}\n`);
}
