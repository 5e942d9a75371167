/** Owns: what operators say about the OpenWOP host in the gateway. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";

const TOKEN_CHARS_MIN = 16;
const VARIABLE = String.raw`\$\{[A-Za-z_][A-Za-z0-9_]*\}`;

const secret = z
  .string()
  .max(BOUNDS.resourceCharsMax)
  .regex(new RegExp(`^(?:${VARIABLE}|[\\x21-\\x7e]{${TOKEN_CHARS_MIN},})$`));

const tenant = z
  .string()
  .max(BOUNDS.idCharsMax)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/);
const origin = z
  .string()
  .max(BOUNDS.resourceCharsMax)
  .regex(/^https?:\/\/[^/?#\s@]+$/);

const tokenSchema = z.strictObject({
  token: secret.describe(
    `At least ${TOKEN_CHARS_MIN} visible ASCII characters; may be given as \`\${VARIABLE}\`.`,
  ),
  tenant: tenant.default("default").describe("Whose runs its holder starts and sees."),
  principal: z
    .string()
    .min(1)
    .max(BOUNDS.idCharsMax)
    .optional()
    .describe("Names the holder in runs and logs. Absent: a fingerprint of the token."),
});
export type OpenWopToken = z.output<typeof tokenSchema>;

export const openWopSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe("Serve OpenWOP below `/coordination/openwop` of the gateway. Off: nothing of it is loaded."),
    tokens: z
      .array(tokenSchema)
      .max(BOUNDS.openWopTokensMax)
      .default([])
      .describe("Who may ask: bearer tokens. Without one nobody could be let in, and `enabled` is refused."),
    workflows: z
      .array(z.string().min(1).max(BOUNDS.resourceCharsMax))
      .max(BOUNDS.openWopFoldersMax)
      .default([])
      .describe(
        "Folders with workflow definitions, one JSON or YAML file for each; relative ones are in OpenClaw's state folder.",
      ),
    coordinationsTenant: tenant
      .default("default")
      .describe("Holders of this tenant's tokens see the coordinations of OpenClaw's agents as runs."),
    baseUrl: z
      .url()
      .max(BOUNDS.resourceCharsMax)
      .optional()
      .describe("Where clients and peers reach it. Absent: the gateway's port on the loopback address."),
    hostId: z
      .string()
      .min(1)
      .max(BOUNDS.idCharsMax)
      .optional()
      .describe("How this host names itself to others. Absent: its base URL."),
    allowPrivate: z
      .array(origin)
      .max(BOUNDS.openWopOriginsMax)
      .default([])
      .describe(
        "Origins of peers and tools that may be private or without TLS, such as `http://127.0.0.1:4096`.",
      ),
    peerTokens: z
      .record(origin, secret)
      .refine((tokens) => Object.keys(tokens).length <= BOUNDS.openWopOriginsMax)
      .default({})
      .describe("Bearer tokens for peers, by their origin; may be given as `${VARIABLE}`."),
  })
  .superRefine(({ enabled, tokens }, context) => {
    if (enabled && tokens.length === 0)
      context.addIssue({
        code: "custom",
        path: ["tokens"],
        message:
          "at least one token where openwop.enabled is true, because nobody could be let in without one",
      });
  });
export type OpenWopConfig = z.output<typeof openWopSchema>;
