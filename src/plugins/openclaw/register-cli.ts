/** Owns: `openclaw coordination`, which is there whether the flag is on or off. */
import { loadStatePaths, type OpenClawPluginApi } from "./host/sdk.ts";

const DESCRIPTOR = {
  name: "coordination",
  description: "Inspect and switch the coordination of subagents",
  hasSubcommands: true,
};

/** Registers the commands of `openclaw coordination`, whose code is loaded when one is run. */
export function registerCoordinationCli(api: OpenClawPluginApi): void {
  api.registerCli(
    async ({ program, config }) => {
      const { addCoordinationCommands } = await import("../cli/add-commands.ts");
      const { createProcessHost } = await import("../cli/process-host.ts");
      const { createGatewayCaller: gatewayCaller } = await import("./host/gateway-call.ts");
      const { createOperatorConfig: hostOperatorConfig } = await import("./host/operator-config.ts");
      const host = createProcessHost({
        program: "openclaw coordination",
        config: hostOperatorConfig(config),
        stateDir: async () => (await loadStatePaths()).resolveStateDir(process.env),
      });
      const command = program.command(DESCRIPTOR.name).description(DESCRIPTOR.description);
      await addCoordinationCommands(command, { ...host, gateway: gatewayCaller() });
    },
    // In machine mode the host keeps stdout to what we write there.
    { descriptors: [{ ...DESCRIPTOR, machineOutput: ({ argv }) => argv.includes("--json") }] },
  );
}
