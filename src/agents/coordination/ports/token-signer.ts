/** Owns: the port that signs and reads the tokens by which interrupts of workflow runs are answered. */

/** The content of an interrupt token. */
export interface TokenPayload {
  readonly runId: string;
  readonly nodeId: string;
  readonly interruptId: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  readonly intent: "resolve" | "inspect";
}

/** Signs interrupt tokens, and tells its own signature from others in constant time. */
export interface TokenSigner {
  sign(payload: TokenPayload): string;
  /** `undefined` for what was not signed here. */
  read(token: string): TokenPayload | undefined;
}
