/**
 * Owns: where a webhook may be sent to.
 *
 * W1: a notice goes to a public address over HTTPS only, unless the operator allows private ones for this webhook.
 * W2: what is connected to is what was checked. The name is resolved here, once a try, and never again by the connection.
 */
import type { WebhookConfig } from "../../agents/coordination/contracts/config/gates-config.ts";
import { resolveAddressesOfUrl, type ResolveName } from "../http/resolve-name.ts";

export type WebhookTarget =
  { readonly kind: "url"; readonly url: URL } | { readonly kind: "refused"; readonly message: string };

export type TargetAddresses =
  | { readonly kind: "addresses"; readonly addresses: readonly string[] }
  | { readonly kind: "refused"; readonly message: string };

/**
 * Returns the configured URL of a webhook, or the refusal of one that is not allowed; does not throw. The messages
 * quote no part of it: its path or query may be a secret.
 */
export function readWebhookTarget({
  url: text,
  allowPrivate,
}: Pick<WebhookConfig, "url" | "allowPrivate">): WebhookTarget {
  const url = URL.parse(text);
  if (!url) return createRefused("The webhook's URL cannot be read.");
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return createRefused("The webhook's URL is not of HTTPS.");
  if (url.protocol === "http:" && !allowPrivate)
    return createRefused("The webhook's URL is not of HTTPS, and allowPrivate is not set.");
  if (url.username !== "" || url.password !== "")
    return createRefused("The webhook's URL holds a user name or password; the signature takes their place.");
  url.hash = "";
  return { kind: "url", url };
}

/**
 * Returns the addresses that a webhook's host resolves to, or the refusal where one is not public and `allowPrivate`
 * is not set. @throws what `resolve` throws
 */
export async function resolveTargetAddresses(
  url: URL,
  allowPrivate: boolean,
  resolve: ResolveName,
): Promise<TargetAddresses> {
  const addresses = await resolveAddressesOfUrl(url, allowPrivate, resolve);
  return addresses
    ? { kind: "addresses", addresses }
    : createRefused("The webhook's URL leads to an address that is not public, and allowPrivate is not set.");
}

function createRefused(message: string): { readonly kind: "refused"; readonly message: string } {
  return { kind: "refused", message };
}
