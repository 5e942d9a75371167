/** Owns: the ids of gateways as owners of runs. They are unique over restarts, and tell which gateway it is. */

const GATEWAY_OWNER = /^gateway:(?<gateway>[A-Za-z0-9][A-Za-z0-9._-]*)\/(?<start>.+)$/u;

/** Returns the id of a gateway as an owner; `start` is another one with each start of the gateway. */
export function createGatewayOwnerId(gateway: string, start: string): string {
  return `gateway:${gateway}/${start}`;
}

/** Returns the gateway that an owner is; `undefined` for any other owner. */
export function parseGatewayOwnerId(ownerId: string): string | undefined {
  return GATEWAY_OWNER.exec(ownerId)?.groups?.["gateway"];
}
