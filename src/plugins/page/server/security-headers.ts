/**
 * Owns: what the browser is told to allow, and from which addresses a request may come.
 *
 * P5 No inline script or style, nothing from elsewhere. P6 A request under a name that is not this machine's, or from a page that is
 * not ours, is refused: a name that somebody else points at this machine (DNS rebinding) reaches nothing.
 */
import { isIP } from "node:net";

export interface AllowedPlaces {
  /** Names besides those of the loopback, with or without a port. */
  readonly hosts: readonly string[];
}

const LOOPBACK_NAMES = new Set(["localhost", "[::1]"]);

/**
 * Returns the `Content-Security-Policy` that lets the page load from `source` alone, and images from `data:` too.
 * `source` is `'self'`, or an origin where the document's own is opaque.
 */
export function createContentSecurityPolicy(source: string): string {
  return [
    "default-src 'none'",
    `script-src ${source}`,
    `style-src ${source}`,
    `img-src ${source} data:`,
    `connect-src ${source}`,
    "font-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    // In the tab this names the origin of the Control UI, which is that of the gateway.
    `frame-ancestors ${source}`,
  ].join("; ");
}

/** Sets on a response's headers the given content security policy and the other headers that protect the page. */
export function setSecurityHeaders(headers: Headers, policy: string): void {
  headers.set("content-security-policy", policy);
  headers.set("x-content-type-options", "nosniff");
  headers.set("referrer-policy", "no-referrer");
  headers.set("cross-origin-opener-policy", "same-origin");
  headers.set("cross-origin-resource-policy", "same-origin");
  headers.set("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=()");
}

/**
 * True when the `Host` header of a request is a loopback name or address, or one that is configured; false without
 * one.
 */
export function isAllowedHost(host: string | undefined, { hosts }: AllowedPlaces): boolean {
  if (host === undefined) return false;
  const name = host.replace(/:\d{1,5}$/, "").toLowerCase();
  if (LOOPBACK_NAMES.has(name) || isLoopbackAddress(name)) return true;
  return hosts.some((allowed) => [host.toLowerCase(), name].includes(allowed.toLowerCase()));
}

function isLoopbackAddress(name: string): boolean {
  return isIP(name) === 4 && name.startsWith("127.");
}

/**
 * True when the `Origin` header of a request shows that the page asks: none at all, the one under which it is asked,
 * or, where that is allowed, `null`, which is that of the tab's frame. `null` gives no right by itself: every request
 * needs the token.
 */
export function isAllowedOrigin(
  origin: string | undefined,
  { host, allowsOpaque }: { readonly host: string; readonly allowsOpaque: boolean },
): boolean {
  if (origin === undefined) return true;
  if (origin === "null") return allowsOpaque;
  return URL.parse(origin)?.host === host.toLowerCase();
}
