/** Owns: offering the gateway methods to the host. Their code is loaded at the first call. */
import { METHODS, type MethodName } from "./declarations/method-declarations.ts";
import { createPlanAccess } from "./runtime-access/plan-access.ts";
import type { MethodCaller } from "./questions/question-methods.ts";
import type { GatewayHandler, OpenClawPluginApi } from "./host/sdk.ts";

/**
 * Registers every gateway method of this plugin with the scope that it needs; the code is loaded at the first request.
 */
export function registerCoordinationMethods(api: OpenClawPluginApi): void {
  for (const [method, scope] of Object.entries(METHODS) as [MethodName, (typeof METHODS)[MethodName]][]) {
    api.registerGatewayMethod(
      method,
      async ({ params, respond, client }) => {
        const { createPlanMethods } = await import("./plans/plan-methods.ts");
        const answer = await createPlanMethods(createPlanAccess(api))(
          method,
          params,
          readMethodCaller(client),
        );
        if (answer.ok) respond(true, answer.payload);
        else respond(false, undefined, answer.error);
      },
      { scope },
    );
  }
}

/** The client of the gateway that called a method. */
type MethodClient = Parameters<GatewayHandler>[0]["client"];

/**
 * Returns the id and the scopes of a client. Calls from within the process may come without one, or with less of one.
 */
function readMethodCaller(client: MethodClient): MethodCaller {
  const { connect } = (client ?? {}) as {
    readonly connect?: { readonly client?: { readonly id?: unknown }; readonly scopes?: unknown };
  };
  const clientId = connect?.client?.id;
  const scopes: unknown[] = Array.isArray(connect?.scopes) ? connect.scopes : [];
  return {
    scopes: scopes.filter((scope) => typeof scope === "string"),
    ...(typeof clientId === "string" && clientId !== "" && { clientId }),
  };
}
