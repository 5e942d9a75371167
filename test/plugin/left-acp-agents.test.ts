import { expect, it } from "vitest";
import { isGone } from "../contract/acp-scene.ts";
import { killGateway } from "../contract/killed-gateway.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { composeWith } from "./composed-coordinator.ts";

it.skipIf(process.platform !== "linux")(
  "a gateway that starts ends the ACP agents that it left, though nobody asks for their attempts",
  async () => {
    using temporary = createTempFolder();
    const [agent = 0] = await killGateway(temporary, "stubborn never", { notesName: "acp-agents" });
    expect(isGone(agent)).toBe(false);
    const coordinator = await composeWith({
      temporary,
      runner: createScriptedRunner(),
      onEvents: () => undefined,
      workingFolder: "agent",
    });
    try {
      await waitFor(() => isGone(agent), { what: "the end of the agent" });
    } finally {
      await coordinator.close();
      if (!isGone(agent)) process.kill(-agent, "SIGKILL");
    }
  },
);
