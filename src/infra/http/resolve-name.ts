/**
 * Owns: the addresses that a URL leads to, and whether they may be called. Does not own: which URLs may be called at all.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { isPublicAddress } from "./public-address.ts";

/** All addresses of a name. */
export type ResolveName = (hostname: string) => Promise<readonly string[]>;

/** How many addresses of a name are tried. */
const ADDRESSES_MAX = 8;

export const resolveAllAddresses: ResolveName = async (hostname) => {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address }) => address);
};

/**
 * Returns the IP addresses of a URL's host, at most `ADDRESSES_MAX`; `undefined` where one of them is private and that
 * is not allowed. @throws what `resolve` throws
 */
export async function resolveAddressesOfUrl(
  url: URL,
  allowPrivate: boolean,
  resolve: ResolveName,
): Promise<readonly string[] | undefined> {
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const addresses = isIP(hostname) === 0 ? await resolve(hostname) : [hostname];
  // One private address among public ones is how a name is made to lead here at the second look.
  if (!allowPrivate && !addresses.every(isPublicAddress)) return undefined;
  return addresses.slice(0, ADDRESSES_MAX);
}
