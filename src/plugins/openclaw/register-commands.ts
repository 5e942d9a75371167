/** Owns: offering the chat command to the host. Its code is loaded at the first call. */
import { createPlanAccess } from "./runtime-access/plan-access.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";
import { createChatAccess } from "./runtime-access/use-chats.ts";

/** Registers the chat command `/coordination`, by which people read and answer questions. */
export function registerCoordinationCommands(api: OpenClawPluginApi): void {
  api.registerCommand({
    name: "coordination",
    description: "Answer what agents and their gates ask: questions, approve ID, deny ID, answer ID TEXT",
    acceptsArgs: true,
    requireAuth: true,
    handler: async (message) => {
      const [{ answerChatCommand }, { createHostLogger: hostLogger }] = await Promise.all([
        import("./questions/answer-command.ts"),
        import("./host/host-logger.ts"),
      ]);
      const dependencies = {
        use: createPlanAccess(api),
        useChats: createChatAccess(api),
        logger: hostLogger(api.logger),
      };
      return { text: await answerChatCommand(dependencies, message) };
    },
  });
}
