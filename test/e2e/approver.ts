/** Owns: a person at another client, whom the gateway asks for approvals, and who answers every question in the same way. */
import { connectOnUse, type Json } from "../support/gateway-client.ts";
import type { Stage } from "./stage.ts";

type Decision = "allow-once" | "deny" | "nothing";

export interface Approver {
  /** The questions, the oldest first. */
  readonly requests: readonly Json[];
  readonly close: () => void;
}

export async function openApprover({ gateway }: Stage, decision: Decision): Promise<Approver> {
  const requests: Json[] = [];
  const client = connectOnUse(gateway.port, gateway.token, {
    caps: ["approvals"],
    hear: (event, payload) => {
      if (event !== "plugin.approval.requested") return;
      requests.push(payload);
      if (decision === "nothing") return;
      const params = { id: payload["id"], decision };
      void client.request({ method: "plugin.approval.resolve", params, timeoutMs: 10_000 });
    },
  });
  await client.request({ method: "health", params: {}, timeoutMs: 10_000 });
  return { requests, close: () => client.close() };
}
