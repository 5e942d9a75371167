/** Owns: asking the running gateway for what only it can do, and what its answers mean to a command. */
import {
  CoordinationError,
  ERROR_CODES,
  isCoordinationError,
  type ErrorCode,
} from "../../../agents/coordination/contracts/errors.ts";
import type { GatewayAnswer } from "../../openclaw/host/gateway-call.ts";
import type { MethodName } from "../../openclaw/declarations/method-declarations.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { withLedger } from "./open-ledger.ts";
import { resolveCoordinationId } from "../../reports/find-coordination.ts";

/** The answer of a gateway that did as it was asked. */
type AcceptedGatewayAnswer = GatewayAnswer & { readonly ok: true };

/**
 * Calls a method of the running gateway and returns its payload. @throws CoordinationError where the gateway cannot be
 * asked or refuses
 */
export async function askGateway(
  host: CliHost,
  method: MethodName,
  params: object,
): Promise<AcceptedGatewayAnswer["payload"]> {
  const answer = await requestGatewayAnswer(host, method, params);
  return answer.ok ? answer.payload : throwGatewayRefusal(answer);
}

/**
 * Throws the error of a gateway's answer that refused a call, with its code, message and advice. @throws
 * CoordinationError always
 */
export function throwGatewayRefusal(answer: RefusedGatewayAnswer): never {
  throw new GatewayRefusal(answer);
}

/**
 * Calls a method of the running gateway and returns its answer, which may be a refusal. @throws CoordinationError
 * where the gateway cannot be asked
 */
export function requestGatewayAnswer(
  { gateway }: CliHost,
  method: MethodName,
  params: object,
): Promise<GatewayAnswer> {
  if (gateway) return gateway(method, params);
  throw new CoordinationError("GATEWAY_UNREACHABLE", "this program cannot call the gateway");
}

/** The answer of a gateway that refused. */
type RefusedGatewayAnswer = GatewayAnswer & { readonly ok: false };

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

  constructor(answer: RefusedGatewayAnswer) {
    super(...translateRefusal(answer));
    this.details = answer.details;
    const { refusal } = (answer.details ?? {}) as { readonly refusal?: unknown };
    this.#advice = isErrorCode(answer.code) ? ADVICE.get(refusal) : FOREIGN_ADVICE;
  }

  override get advice(): string {
    return this.#advice ?? super.advice;
  }
}

/**
 * Returns the error code and message of a refusal. A code that only a newer plugin or the host itself knows becomes
 * `REQUEST_REFUSED`.
 */
function translateRefusal({ code, message }: RefusedGatewayAnswer): [ErrorCode, string] {
  return isErrorCode(code)
    ? [code, message]
    : ["REQUEST_REFUSED", `the gateway refused: ${message} (${code})`];
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}

/**
 * Calls `ask` with the typed id of a coordination and returns its result; where the gateway has no coordination of
 * that id, calls it again with the full id that the typed one is a prefix of. The gateway may be on another machine:
 * its ledger may have a coordination with just this id that the ledger here lacks. @throws CoordinationError as `ask`
 * and `findFullId` do
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
 * Returns the full id of the coordination that a prefix names in the ledger of this machine; the prefix itself where
 * that ledger cannot be read or has no such coordination. @throws CoordinationError `INPUT_INVALID` for a prefix of
 * several
 */
export async function resolveFullId(host: CliHost, id: string): Promise<string> {
  try {
    return await withLedger(host, {}, (reader) => resolveCoordinationId(reader, id));
  } catch (error) {
    if (isCoordinationError(error) && error.code === "INPUT_INVALID") throw error;
    return id;
  }
}
