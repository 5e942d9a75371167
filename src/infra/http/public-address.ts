/**
 * Owns: which addresses are of the public internet. Does not own: how a name is resolved (`resolve-name.ts`).
 *
 * An IPv6 address can be public only in the range of global unicast, so everything that stands for an IPv4 address in another
 * form (mapped, compatible, NAT64), and everything local or multicast, is out without being listed.
 */
import { BlockList, isIP } from "node:net";

/** https://www.iana.org/assignments/iana-ipv4-special-registry, multicast, and one cloud's own service. */
const NOT_PUBLIC_4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  // Answers only from within Azure, with what machines there are told of themselves.
  ["168.63.129.16", 32],
] as const;

const GLOBAL_UNICAST_6 = ["2000::", 3] as const;

/** https://www.iana.org/assignments/iana-ipv6-special-registry: the parts of global unicast that are not, or hold IPv4. */
const NOT_PUBLIC_6 = [
  // Teredo, benchmarks and identifiers that are no addresses.
  ["2001::", 23],
  ["2001:db8::", 32],
  // 6to4
  ["2002::", 16],
  ["3fff::", 20],
] as const;

/** Ranges of network addresses, each by its network and the length of its prefix. */
type AddressRanges = readonly (readonly [network: string, bits: number])[];

const notPublic4 = createBlockList(NOT_PUBLIC_4, "ipv4");
const notPublic6 = createBlockList(NOT_PUBLIC_6, "ipv6");
const globalUnicast6 = createBlockList([GLOBAL_UNICAST_6], "ipv6");

/** Returns whether an IP address is of the public internet; false for no address, and for one with a zone. */
export function isPublicAddress(address: string): boolean {
  if (address.includes("%")) return false;
  if (isIP(address) === 4) return !notPublic4.check(address, "ipv4");
  if (isIP(address) === 6) return globalUnicast6.check(address, "ipv6") && !notPublic6.check(address, "ipv6");
  return false;
}

function createBlockList(ranges: AddressRanges, family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const [network, bits] of ranges) list.addSubnet(network, bits, family);
  return list;
}
