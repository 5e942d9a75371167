/** Owns: `page`: the address of the operator's page, with a link that signs in once. */
import { spawn } from "node:child_process";
import { readConfigValueAt } from "../openclaw/host/operator-config.ts";
import { askGateway } from "./ledger/ask-gateway.ts";
import type { CliHost, CommandGroup } from "./terminal/cli-host.ts";
import { assertNotInModelShell } from "./terminal/model-shell.ts";
import {
  runCommand,
  withExamples,
  withJsonOption,
  writeJson,
  writeLines,
  type JsonOption,
} from "./terminal/run-command.ts";

interface PageOptions extends JsonOption {
  readonly open: boolean;
}

/** Adds the command `page`, which opens the operator's page of the running gateway, or prints its address. */
export function addPageCommand(parent: CommandGroup, host: CliHost): void {
  const command = withJsonOption(parent.command("page"))
    .description("Open the operator's page of the running gateway, or print its address")
    .option("--no-open", "only print the address")
    .action((options: PageOptions) => runCommand(host, options, () => showPageAddress(host, options)));
  withExamples(command, host, ["page", "page --no-open", "page --json"]);
}

/**
 * Prints the address, which signs in once, and opens it in a browser where there is a terminal; not with `--no-open`
 * or `--json`, or for a gateway on another machine.
 */
async function showPageAddress(host: CliHost, options: PageOptions): Promise<void> {
  // Whoever has the address answers as a person does.
  assertNotInModelShell();
  const { address, rights } = await askGateway(host, "coordination.page.link", {});
  const isRemote = await isGatewayRemote(host, String(address));
  if (options.json) {
    await writeJson(host, { ok: true, address, rights, ...(isRemote && { remote: true }) });
    return;
  }
  const lines = [String(address), "It signs in once, within five minutes."];
  await writeLines(host, isRemote ? [...lines, REMOTE_HINT] : lines);
  if (options.open && !isRemote && host.stdout.terminal.isTTY) openInBrowser(String(address));
}

const REMOTE_HINT =
  "This address is on the gateway's machine. Through a tunnel or a proxy, put the name and port by which you reach the gateway in place of 127.0.0.1 and its port, and the name into `page.hosts`.";

/**
 * True where the address cannot be reached as it is, because the gateway that was asked is on another machine:
 * `OPENCLAW_GATEWAY_URL` names one, or else OpenClaw's configuration says so.
 */
async function isGatewayRemote({ config }: CliHost, address: string): Promise<boolean> {
  // OpenClaw's client asks the gateway of the variable, whatever the configuration says.
  const gatewayUrl = URL.parse(process.env["OPENCLAW_GATEWAY_URL"]?.trim() ?? "");
  if (gatewayUrl) return !LOOPBACK.has(gatewayUrl.hostname) || gatewayUrl.port !== URL.parse(address)?.port;
  const read = await config.read().catch(() => undefined);
  return readConfigValueAt(read?.config, "gateway.mode") === "remote";
}

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Opens an address in the browser. A failure is ignored, because the address is printed all the same. */
function openInBrowser(address: string): void {
  const [program, ...words] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...words, address], { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
