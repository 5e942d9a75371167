/** Owns: where the gateway serves OpenWOP. */
import { dropTrailingSlashes } from "../../../agents/coordination/std/foreign-text.ts";
import { formatGatewayOrigin, type GatewayPlace } from "./gateway-origin.ts";

/** The paths of the protocol are below it. */
export const OPENWOP_PATH = "/coordination/openwop";

/** Returns the base URL, without a slash at its end. */
export function openWopBaseUrl(baseUrl: string | undefined, place: GatewayPlace): string {
  return baseUrl === undefined
    ? `${formatGatewayOrigin(place)}${OPENWOP_PATH}`
    : dropTrailingSlashes(baseUrl);
}

/** The path of the protocol in a path of the gateway; `undefined` for one that is not below ours. */
export function openWopPath(url: string): string | undefined {
  const address = url.slice(0, OPENWOP_PATH.length);
  // As the host matches it.
  if (address.toLowerCase() !== OPENWOP_PATH) return undefined;
  const rest = url.slice(OPENWOP_PATH.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}
