/** Owns: `mcp`, which offers workflows, runs and the gateway's plans to one MCP client over the standard streams. */
import { askGateway } from "../ledger/ask-gateway.ts";
import { proveLedgerApart } from "./prove-apart.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { assertNotInModelShell } from "../terminal/model-shell.ts";
import { runCommand, withExamples } from "../terminal/run-command.ts";
import { addHostOptions, readHostOptions, type HostOptions } from "./host-options.ts";
import { waitForStopSignal } from "./serve-command.ts";

interface McpOptions extends HostOptions {
  readonly tenant: string;
  readonly allowAnswers?: boolean;
}

/** Adds the command `mcp`, which offers workflows as tools to the MCP client that starts this program. */
export function addMcpCommand(command: CommandGroup, host: CliHost): void {
  const mcp = command
    .command("mcp")
    .description(
      "Offer workflows as tools to an MCP client that starts this program, over its standard streams",
    )
    .option("--tenant <name>", "whose runs they are", "default")
    .option("--allow-answers", "the client may answer what people are asked: it must ask its user each time");
  addHostOptions(mcp);
  withExamples(mcp, host, [
    "mcp --workflows ./workflows",
    "mcp --ledger ./runs.sqlite --workflows ./workflows --allow-answers",
  ]).action((options: McpOptions) => runCommand(host, options, () => serveMcpClient(host, options)));
}

async function serveMcpClient(host: CliHost, options: McpOptions): Promise<void> {
  const mayAnswer = options.allowAnswers === true;
  if (mayAnswer) assertNotInModelShell();
  const { startMcp } = await import("../../serve-mcp.ts");
  const hostOptions = await readHostOptions(host, options);
  const { ledgerPath } = hostOptions;
  const served = await startMcp({
    ...hostOptions,
    tenant: options.tenant,
    mayAnswer,
    input: process.stdin,
    output: process.stdout,
    operator: {
      askGateway: (method, params) => askGateway(host, method, params),
      verifyLedger: async (signal) => ({ ...(await proveLedgerApart(host, ledgerPath, signal)) }),
    },
  });
  await Promise.race([served.ended, waitForStopSignal()]);
  await served.stop();
  process.stdin.destroy();
}
