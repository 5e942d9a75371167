/** Owns: where the gateway serves OpenWOP. */
import type { OpenWopConfig } from "../../../agents/coordination/contracts/config/openwop-config.ts";

/** The paths of the protocol are below it. */
export const OPENWOP_PATH = "/coordination/openwop";

/** The host's own default. */
const GATEWAY_PORT = 18_789;

export interface GatewayPlace {
  /** OpenClaw's configuration. */
  readonly config: unknown;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Returns the base URL, without a slash at its end. */
export function openWopBaseUrl({ baseUrl }: Pick<OpenWopConfig, "baseUrl">, place: GatewayPlace): string {
  return baseUrl?.replace(/\/+$/, "") ?? `http://127.0.0.1:${portOf(place)}${OPENWOP_PATH}`;
}

function portOf({ config, env: { OPENCLAW_GATEWAY_PORT: portGiven } }: GatewayPlace): number {
  const { gateway } = (config ?? {}) as { readonly gateway?: { readonly port?: unknown } };
  const [port] = [Number(portGiven), Number(gateway?.port)].filter((each) => each > 0);
  return port ?? GATEWAY_PORT;
}

/** The path of the protocol in a path of the gateway; `undefined` for one that is not below ours. */
export function openWopPath(url: string): string | undefined {
  const address = url.slice(0, OPENWOP_PATH.length);
  // As the host matches it.
  if (address.toLowerCase() !== OPENWOP_PATH) return undefined;
  const rest = url.slice(OPENWOP_PATH.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}
