/** Owns: a gateway for commands that answers what a test says, and pauses that take no time. */
import type { InterruptibleWait } from "../../src/plugins/cli/terminal/waiting-line.ts";
import type { CoordinationStatusReport } from "../../src/plugins/openclaw/plans/coordination-status.ts";
import type { GatewayAnswer, GatewayCaller } from "../../src/plugins/openclaw/host/gateway-call.ts";

export interface FakeGateway {
  readonly call: GatewayCaller;
  readonly calls: { readonly method: string; readonly params: object }[];
}

/** Answers one call after another; the last answer is repeated. */
export function gatewayOf(...answers: readonly (GatewayAnswer | Error)[]): FakeGateway {
  const calls: FakeGateway["calls"] = [];
  return {
    calls,
    call: (method, params) => {
      const answer = answers[Math.min(calls.length, answers.length - 1)];
      calls.push({ method, params });
      if (!answer || answer instanceof Error) return Promise.reject(answer ?? new Error("no answer"));
      return Promise.resolve(answer);
    },
  };
}

export const createOkAnswer = (payload: Record<string, unknown>): GatewayAnswer => ({ ok: true, payload });

/** The answer of a gateway that has no coordination with the id. */
export const NOT_FOUND: GatewayAnswer = {
  ok: false,
  code: "COORDINATION_NOT_FOUND",
  message: "there is no coordination with this id",
};

export function report(status: string, fields: Partial<CoordinationStatusReport> = {}): GatewayAnswer {
  const counts = { total: 2, ended: 0, byStatus: {} };
  const coordination = { coordinationId: "co-1", status, startedAt: "2026-01-02T03:04:05.000Z", counts };
  return createOkAnswer({ coordination: { ...coordination, steps: [], ...fields } });
}

/** Pauses take no time; Ctrl-C comes in the pause with this number. */
export function createWaiting(interruptedAt = Number.POSITIVE_INFINITY): {
  make: () => InterruptibleWait;
  pauses: number[];
  disposed: number;
} {
  const state = { pauses: [] as number[], disposed: 0, make: (): InterruptibleWait => made };
  const made: InterruptibleWait = {
    isInterrupted: () => state.pauses.length >= interruptedAt,
    pause: (ms) => {
      state.pauses.push(ms);
      return Promise.resolve();
    },
    [Symbol.dispose]: () => {
      state.disposed += 1;
    },
  };
  return state;
}
