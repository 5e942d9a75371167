/** Owns: where the gateway listens on this machine. */

/** The host's own default. */
const GATEWAY_PORT = 18_789;

export interface GatewayPlace {
  /** OpenClaw's configuration. */
  readonly config: unknown;
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface GatewaySettings {
  readonly port?: unknown;
  readonly tls?: { readonly enabled?: unknown };
}

/**
 * Returns the local origin of the gateway, such as `http://127.0.0.1:18789`, with the port of the environment, else of
 * the configuration.
 */
export function formatGatewayOrigin({
  config,
  env: { OPENCLAW_GATEWAY_PORT: portGiven },
}: GatewayPlace): string {
  const { gateway } = (config ?? {}) as { readonly gateway?: GatewaySettings };
  const [port = GATEWAY_PORT] = [Number(portGiven), Number(gateway?.port)].filter((each) => each > 0);
  // The port then speaks TLS only.
  const scheme = gateway?.tls?.enabled === true ? "https" : "http";
  return `${scheme}://127.0.0.1:${port}`;
}
