/** Owns: `claims release`. The claims of a running gateway are its to end: no command writes to its ledger. */
import { describeResource } from "./resource-text.ts";
import type { Command } from "commander";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import { askGateway } from "../ledger/ask-gateway.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { formatPrintable } from "../terminal/printable.ts";
import {
  runCommand,
  parseWholeNumber,
  assertQuestionVisible,
  assertNoOptionsOfParent,
  withExamples,
  withJsonOption,
  writeJson,
  writeLines,
  type JsonOption,
} from "../terminal/run-command.ts";

interface ReleaseOptions extends JsonOption {
  readonly yes?: boolean;
}

const EFFECT = "The step keeps working; its next write of this is ruled on anew.";

/** Adds the command `claims release`, which ends a claim after asking, so that others get the resource. */
export function addReleaseCommand(parent: CommandGroup, host: CliHost): void {
  const command = withJsonOption(parent.command("release"))
    .description("End a claim, so that others get the resource; the step that held it keeps working")
    .argument("<token>", "the claim's token, as `claims` lists it")
    .option("-y, --yes", "do not ask")
    .action((token: string, _: ReleaseOptions, typed: Command) => {
      // `--json` is an option of `claims`, too, which takes it wherever it stands.
      const options = typed.optsWithGlobals<ReleaseOptions>();
      return runCommand(host, options, async () => {
        assertNoOptionsOfParent(typed, OPTIONS_OF_LIST, WHY_NOT_HERE);
        await releaseClaim(host, token, options);
      });
    });
  withExamples(command, host, ["claims release 17", "claims release 17 --yes --json"]);
}

const OPTIONS_OF_LIST = ["ledger", "resource", "all", "limit"];
const WHY_NOT_HERE =
  "it is for listing claims; `claims release` ends a claim of the running gateway, by its token";

/**
 * Has the gateway end a claim, once a person confirms it; nobody is asked with `--yes`, or where nobody can be asked.
 */
async function releaseClaim(host: CliHost, text: string, options: ReleaseOptions): Promise<void> {
  const token = parseWholeNumber(text, { option: "token", min: 1, max: Number.MAX_SAFE_INTEGER });
  assertQuestionVisible(host, options);
  const isWanted = options.yes === true || host.confirm === undefined;
  if (!isWanted && !(await host.confirm(`End claim ${token}? ${EFFECT}`))) {
    host.failWith(1);
    if (options.json) await writeJson(host, { ok: false, token });
    else await writeLines(host, ["nothing was changed"]);
    return;
  }
  const { coordinationId, stepId, resource } = await askGateway(host, "coordination.claims.release", {
    token,
  });
  if (options.json) {
    await writeJson(host, { ok: true, token, coordinationId, stepId, resource });
    return;
  }
  const print = (value: unknown): string => formatPrintable(String(value), host.stdout.terminal.unicode);
  await writeLines(host, [
    `released claim ${token} of step ${print(stepId)} on ${print(describeResource(String(resource)))}`,
    EFFECT,
    `See ${host.program} show ${print(formatShellArguments(String(coordinationId)))}`,
  ]);
}
