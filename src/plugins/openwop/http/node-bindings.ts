/** Owns: what `@hono/node-server` hands on of the socket; absent where a request comes without one. */
import type { Context } from "hono";
import { isIPv6 } from "node:net";

export interface NodeBindings {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string | undefined } };
  readonly outgoing?: { destroy(): void };
}

/** Returns the objects of Node behind a request of Hono; an empty object where there are none. */
export function readNodeBindings({ env }: Context): NodeBindings {
  return (env ?? {}) as NodeBindings;
}

/**
 * Returns the address under which a client's requests are counted: an IPv4 address, or the /64 network of an IPv6 one,
 * which one person has whole; `undefined` where the socket has none.
 */
export function findClientAddress(context: Context): string | undefined {
  const address = readNodeBindings(context).incoming?.socket?.remoteAddress;
  if (address === undefined) return undefined;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return isIPv6(address) ? formatIpv6Network(address) : address;
}

function formatIpv6Network(address: string): string {
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const groups = [...first, ...Array.from({ length: zeros }, () => "0"), ...last];
  return `${groups.slice(0, 4).join(":")}::/64`;
}
