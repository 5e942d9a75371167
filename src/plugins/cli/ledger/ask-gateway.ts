/** Owns: asking the running gateway for what only it can do, and what its answers mean to a command. */
import {
  CoordinationError,
  ERROR_CODES,
  isCoordinationError,
  type ErrorCode,
} from "../../../agents/coordination/contracts/errors.ts";
import type { GatewayAnswer } from "../../openclaw/host/gateway-call.ts";
import type { MethodName } from "../../openclaw/host/method-declarations.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { withLedger } from "./open-ledger.ts";
import { resolveId } from "../../reports/find-coordination.ts";

type Answered = GatewayAnswer & { readonly ok: true };

/** @throws CoordinationError where the gateway cannot be asked or refuses */
export async function askGateway(
  host: CliHost,
  method: MethodName,
  params: object,
): Promise<Answered["payload"]> {
  const answer = await answerOf(host, method, params);
  return answer.ok ? answer.payload : throwAnswer(answer);
}

/** @throws CoordinationError */
export function throwAnswer(answer: Refused): never {
  throw new GatewayRefusal(answer);
}

/** @throws CoordinationError where the gateway cannot be asked */
export function answerOf({ gateway }: CliHost, method: MethodName, params: object): Promise<GatewayAnswer> {
  if (gateway) return gateway(method, params);
  throw new CoordinationError("GATEWAY_UNREACHABLE", "this program cannot call the gateway");
}

type Refused = GatewayAnswer & { readonly ok: false };

/** Advice about a refusal where the advice of its code is for another one. */
const ADVICE: ReadonlyMap<unknown, string> = new Map([
  ["NO_SUCH_CLAIM", "Run `openclaw coordination claims` to see what is claimed."],
  ["PAGE_OFF", "Set coordination.phase1.page.enabled to true in the plugin's configuration."],
]);

/** The advice of our codes is about coordinations. */
const FOREIGN_ADVICE =
  "OpenClaw itself refused it: where a scope is missing, use a client that has it (docs/openclaw.md, Gateway methods).";

class GatewayRefusal extends CoordinationError {
  readonly #advice: string | undefined;
  /** The gateway's words beside its sentence, such as everything that is wrong with a plan. */
  readonly details: unknown;

  constructor(answer: Refused) {
    super(...meaningOf(answer));
    this.details = answer.details;
    const { refusal } = (answer.details ?? {}) as { readonly refusal?: unknown };
    this.#advice = isErrorCode(answer.code) ? ADVICE.get(refusal) : FOREIGN_ADVICE;
  }

  override get advice(): string {
    return this.#advice ?? super.advice;
  }
}

/** A code that only a newer plugin or the host itself knows is a refusal as well. */
function meaningOf({ code, message }: Refused): [ErrorCode, string] {
  return isErrorCode(code)
    ? [code, message]
    : ["REQUEST_REFUSED", `the gateway refused: ${message} (${code})`];
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}

/**
 * Asks about the coordination with the typed id, and where the gateway has none, about the one that the id is a prefix of. The
 * gateway may be on another machine: its ledger may have a coordination with just this id that the ledger here lacks.
 *
 * @throws CoordinationError as `ask` and `findFullId` do
 */
export async function askByPrefix<T>(
  id: string,
  ask: (coordinationId: string) => Promise<T>,
  findFullId: () => Promise<string>,
): Promise<T> {
  try {
    return await ask(id);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "COORDINATION_NOT_FOUND") throw error;
    const fullId = await findFullId();
    if (fullId === id) throw error;
    return ask(fullId);
  }
}

/**
 * Returns the id that a prefix names in the ledger of this machine, or the prefix where that ledger does not know it.
 *
 * @throws CoordinationError `INPUT_INVALID` for a prefix of several
 */
export async function resolveFullId(host: CliHost, id: string): Promise<string> {
  try {
    return await withLedger(host, {}, (reader) => resolveId(reader, id));
  } catch (error) {
    if (isCoordinationError(error) && error.code === "INPUT_INVALID") throw error;
    return id;
  }
}
