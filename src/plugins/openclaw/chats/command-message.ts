/** Owns: what the plugin reads of a chat message that calls it. */

/** The part of the host's context that says who wrote what, where. */
export interface CommandMessage {
  readonly channel: string;
  /** The channel's name for the sender. */
  readonly senderId?: string | undefined;
  readonly isAuthorizedSender: boolean;
  /** Scopes of a gateway client; absent on other channels. */
  readonly gatewayClientScopes?: readonly string[] | undefined;
  readonly sessionKey?: string | undefined;
  /** The text behind the command's name. */
  readonly args?: string | undefined;
}
