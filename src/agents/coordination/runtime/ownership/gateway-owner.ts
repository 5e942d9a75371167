/** Owns: the ids of gateways as owners of runs. They are unique over restarts, and tell which gateway it is. */

const GATEWAY_OWNER = /^gateway:(?<gateway>[A-Za-z0-9][A-Za-z0-9._-]*)\/(?<start>.+)$/u;

/**
 * Returns the id by which a gateway owns runs in a shared ledger; `start` is another one with each start of the
 * gateway.
 */
export function createGatewayOwnerId(gateway: string, start: string): string {
  return `gateway:${gateway}/${start}`;
}

/** Returns the name of the gateway in an owner's id; `undefined` for the id of any other owner. */
export function parseGatewayOwnerId(ownerId: string): string | undefined {
  return GATEWAY_OWNER.exec(ownerId)?.groups?.["gateway"];
}
