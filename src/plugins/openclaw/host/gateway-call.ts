/**
 * Owns: calling a method of the running gateway from the command line, and what its failures mean. The host's client is loaded
 * at the first call.
 */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { GatewayRuntime } from "./sdk.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

/** The answer of the method; a refusal is an answer. */
export type GatewayAnswer =
  | { readonly ok: true; readonly payload: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly details?: unknown };

/** @throws CoordinationError `GATEWAY_UNREACHABLE` or `COORDINATION_OFF` */
export type GatewayCaller = (method: string, params: object) => Promise<GatewayAnswer>;

export type GatewayClient = Pick<GatewayRuntime, "callGatewayFromCli">;

/** Longer than a method takes to admit a plan of 10,000 steps. */
const TIMEOUT_MS = "45000";

/** The scopes that a call of the gateway asks for. */
type CallScopes = NonNullable<NonNullable<Parameters<GatewayRuntime["callGatewayFromCli"]>[3]>["scopes"]>;

/** The host asks for no more scopes than a method needs; the link lets one do what its caller may. */
const SCOPES: Readonly<Partial<Record<string, CallScopes>>> = {
  "coordination.page.link": ["operator.read", "operator.write", "operator.approvals"],
};

/**
 * Creates the function that calls a method of the running gateway by the host's client, loaded at the first call; a
 * refusal of the gateway is returned, and thrown only where coordination is off in it.
 */
export function createGatewayCaller(load: () => Promise<GatewayClient> = loadClient): GatewayCaller {
  return async (method, params) => {
    const { callGatewayFromCli } = await loadClientOrThrow(load);
    try {
      const options = { json: true, timeout: TIMEOUT_MS };
      const scopes = SCOPES[method];
      const extra = { progress: false, ...(scopes && { scopes }) };
      return { ok: true, payload: await callGatewayFromCli(method, options, params, extra) };
    } catch (error) {
      return toRefusedAnswer(error);
    }
  };
}

async function loadClient(): Promise<GatewayClient> {
  return (await import("./sdk.ts")).loadGatewayRuntime();
}

async function loadClientOrThrow(load: () => Promise<GatewayClient>): Promise<GatewayClient> {
  try {
    return await load();
  } catch (cause) {
    throw new CoordinationError(
      "GATEWAY_UNREACHABLE",
      "the openclaw package is not installed beside this program; use `openclaw coordination`, or install both in one place, in the folder of this program's archive: `npm install -g openclaw ./openclaw-coordination-*.tgz`",
      { cause },
    );
  }
}

/** The host refuses these before it opens a connection, whether or not a gateway runs. */
const CREDENTIALS: ReadonlySet<unknown> = new Set([
  "GatewayCredentialsRequiredError",
  "GatewayStoredDeviceAuthUnavailableError",
  "GatewayLocalBackendSharedAuthUnavailableError",
]);

/** True where the host refused for want of credentials, before it opened a connection. */
function isMissingCredentials(error: unknown): boolean {
  return error instanceof Error && CREDENTIALS.has(error.name);
}

class CredentialsMissing extends CoordinationError {
  constructor(message: string, cause: unknown) {
    super("GATEWAY_UNREACHABLE", message, { cause });
  }

  override get advice(): string {
    return "Set `gateway.auth.token` in the OpenClaw configuration, or `OPENCLAW_GATEWAY_TOKEN`, to the token that the gateway runs with.";
  }
}

/**
 * Returns the refusal with which the gateway answered; an unknown method is thrown as `COORDINATION_OFF`. @throws
 * CoordinationError where it did not answer
 */
function toRefusedAnswer(error: unknown): GatewayAnswer {
  const { gatewayCode, details } = (error ?? {}) as { gatewayCode?: unknown; details?: unknown };
  const [sentence = ""] = describeError(error).split("\n");
  if (isMissingCredentials(error)) throw new CredentialsMissing(sentence, error);
  if (typeof gatewayCode !== "string")
    throw new CoordinationError("GATEWAY_UNREACHABLE", formatCallFailure(error, sentence), { cause: error });
  if (/^unknown method: /u.test(sentence))
    throw new CoordinationError("COORDINATION_OFF", "coordination is off in the gateway", { cause: error });
  return { ok: false, code: gatewayCode, message: sentence, ...(details !== undefined && { details }) };
}

/** The warning about a call whose answer was not waited for to its end. */
export const MAY_BE_DONE = "the request may have been carried out all the same";

/** The host's own words about a connection that ended, or was silent, behind the request. */
const SENT = "The request was already sent to the gateway";

/**
 * Returns the sentence, with the warning that the request may have been carried out where it timed out or the
 * connection ended after it was sent.
 */
function formatCallFailure(error: unknown, sentence: string): string {
  const { kind } = (error ?? {}) as { kind?: unknown };
  const isDoubtful = kind === "timeout" || describeError(error).includes(SENT);
  return isDoubtful ? `${sentence}; ${MAY_BE_DONE}` : sentence;
}
