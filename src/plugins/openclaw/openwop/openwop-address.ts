/** Owns: where the gateway serves OpenWOP. */
import { dropTrailingSlashes } from "../../../agents/coordination/std/foreign-text.ts";
import { formatGatewayOrigin, type GatewayPlace } from "./gateway-origin.ts";

/** The paths of the protocol are below it. */
export const OPENWOP_PATH = "/coordination/openwop";

/**
 * Returns the base URL of the OpenWOP host: the configured one, or else the gateway's own with our path, without a
 * slash at its end.
 */
export function formatOpenWopBaseUrl(baseUrl: string | undefined, place: GatewayPlace): string {
  return baseUrl === undefined
    ? `${formatGatewayOrigin(place)}${OPENWOP_PATH}`
    : dropTrailingSlashes(baseUrl);
}

/**
 * Returns what follows the OpenWOP prefix in a request's URL, beginning with a slash; `undefined` where the URL does
 * not begin with the prefix, upper and lower case being the same.
 */
export function readOpenWopPath(url: string): string | undefined {
  const address = url.slice(0, OPENWOP_PATH.length);
  // As the host matches it.
  if (address.toLowerCase() !== OPENWOP_PATH) return undefined;
  const rest = url.slice(OPENWOP_PATH.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}
