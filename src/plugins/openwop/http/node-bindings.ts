/** Owns: what `@hono/node-server` hands on of the socket; absent where a request comes without one. */
import type { Context } from "hono";
import { isIPv6 } from "node:net";

export interface NodeBindings {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string | undefined } };
  readonly outgoing?: { destroy(): void };
}

export function bindingsOf({ env }: Context): NodeBindings {
  return (env ?? {}) as NodeBindings;
}

/** Whom requests are counted for: an IPv4 address, or the /64 network of an IPv6 one, which one person has whole. */
export function addressOf(context: Context): string | undefined {
  const address = bindingsOf(context).incoming?.socket?.remoteAddress;
  if (address === undefined) return undefined;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return isIPv6(address) ? networkOf(address) : address;
}

function networkOf(address: string): string {
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const groups = [...first, ...Array.from({ length: zeros }, () => "0"), ...last];
  return `${groups.slice(0, 4).join(":")}::/64`;
}
