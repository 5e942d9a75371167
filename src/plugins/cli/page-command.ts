/** Owns: `page`: the address of the operator's page, with a link that signs in once. */
import { spawn } from "node:child_process";
import { askGateway } from "./ledger/ask-gateway.ts";
import type { CliHost, CommandGroup } from "./terminal/cli-host.ts";
import { refuseInModelShell } from "./terminal/model-shell.ts";
import {
  runCommand,
  withExamples,
  withJson,
  writeJson,
  writeLines,
  type JsonOption,
} from "./terminal/run-command.ts";

interface PageOptions extends JsonOption {
  readonly open: boolean;
}

export function addPage(parent: CommandGroup, host: CliHost): void {
  const command = withJson(parent.command("page"))
    .description("Open the operator's page of the running gateway, or print its address")
    .option("--no-open", "only print the address")
    .action((options: PageOptions) => runCommand(host, options, () => showPage(host, options)));
  withExamples(command, host, ["page", "page --no-open", "page --json"]);
}

async function showPage(host: CliHost, options: PageOptions): Promise<void> {
  // Whoever has the address answers as a person does.
  refuseInModelShell();
  const { address, rights } = await askGateway(host, "coordination.page.link", {});
  if (options.json) {
    await writeJson(host, { ok: true, address, rights });
    return;
  }
  await writeLines(host, [String(address), "It signs in once, within five minutes."]);
  if (options.open && host.stdout.terminal.isTTY) openInBrowser(String(address));
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Where no browser opens, the address is printed all the same. */
function openInBrowser(address: string): void {
  const [program, ...words] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...words, address], { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
