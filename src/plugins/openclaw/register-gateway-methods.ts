/** Owns: offering the gateway methods to the host. Their code is loaded at the first call. */
import { METHODS, type MethodName } from "./method-declarations.ts";
import { planAccess } from "./plan-access.ts";
import type { OpenClawPluginApi } from "./sdk.ts";

export function registerCoordinationMethods(api: OpenClawPluginApi): void {
  for (const [method, scope] of Object.entries(METHODS) as [MethodName, (typeof METHODS)[MethodName]][]) {
    api.registerGatewayMethod(
      method,
      async ({ params, respond }) => {
        const { createPlanMethods } = await import("./plan-methods.ts");
        const answer = await createPlanMethods(planAccess(api))(method, params);
        if (answer.ok) respond(true, answer.payload);
        else respond(false, undefined, answer.error);
      },
      { scope },
    );
  }
}
