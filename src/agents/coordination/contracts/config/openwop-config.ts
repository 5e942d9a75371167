/** Owns: what operators say about the OpenWOP host in the gateway. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { DEFAULT_QUOTAS, QUOTA_MAX, type Quotas } from "../workflows/quotas.ts";
import { WORKFLOW_BOUNDS } from "../workflows/workflow-bounds.ts";

/** A day, in milliseconds. */
export const DAY_MS = 24 * 3_600_000;
/** The longest time, in days, for which ended runs are kept to be replayed. */
export const REPLAY_RETENTION_DAYS_MAX = 3_650;

const TOKEN_CHARS_MIN = 16;
const VARIABLE = String.raw`\$\{[A-Za-z_][A-Za-z0-9_]*\}`;

const secret = z
  .string()
  .max(BOUNDS.resourceCharsMax)
  .regex(new RegExp(`^(?:${VARIABLE}|[\\x21-\\x7e]{${TOKEN_CHARS_MIN},})$`));

/** A token of another host, which says how long it is. */
const foreignToken = z
  .string()
  .max(BOUNDS.resourceCharsMax)
  .regex(new RegExp(`^(?:${VARIABLE}|[\\x21-\\x7e]+)$`));

const tenant = z
  .string()
  .max(BOUNDS.idCharsMax)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/);
const origin = z
  .string()
  .max(BOUNDS.resourceCharsMax)
  .regex(/^https?:\/\/[^/?#\s@]+$/)
  .refine((text) => URL.canParse(text), "an origin such as https://peer.example");

/** True when the text is a URL with a user or password in it; false for a text that is no URL. */
export function hasUserOrPassword(address: string): boolean {
  const url = URL.parse(address);
  return url !== null && (url.username !== "" || url.password !== "");
}

const mcpServer = z
  .url({ protocol: /^https?$/ })
  .max(BOUNDS.resourceCharsMax)
  .refine(
    (address) => !hasUserOrPassword(address),
    "an address without a user and password, because none with them is called; give a bearer token for its origin in openwop.peerTokens",
  );

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
  scopes: z
    .array(z.string().min(1).max(BOUNDS.idCharsMax))
    .max(BOUNDS.openWopOriginsMax)
    .optional()
    .describe("What its holder's agents may use tools for that ask for it (`toolScopes`). Absent: nothing."),
});
/** A bearer token with its tenant, principal and scopes. */
export type OpenWopToken = z.output<typeof tokenSchema>;

const MENTION_WAIT_SECONDS_MAX = 600;

const mentionsSchema = z.strictObject({
  senders: z
    .array(
      z
        .string()
        .max(BOUNDS.resourceCharsMax)
        .regex(/^[^:\s]+:\S+$/),
    )
    .max(BOUNDS.openWopSendersMax)
    .optional()
    .describe(
      "Who may call these agents in a chat: `CHANNEL:SENDER`, or `CHANNEL:*`. Absent: clients of the gateway, and by `/coordination ask` those whom their channel authorises. An empty list: nobody.",
    ),
  scopes: z
    .array(z.string().min(1).max(BOUNDS.idCharsMax))
    .max(BOUNDS.openWopOriginsMax)
    .default([])
    .describe("What agents that are called in a chat may use tools for that ask for it (`toolScopes`)."),
  waitSeconds: z
    .number()
    .min(1)
    .max(MENTION_WAIT_SECONDS_MAX)
    .default(60)
    .describe(
      "How long a chat waits for the agent's answer before it is told that the agent is still at work.",
    ),
});
/** Settings of mentioning agents in chats. */
export type MentionsConfig = z.output<typeof mentionsSchema>;

const createQuotaSchema = (description: string, name: keyof Quotas): z.ZodDefault<z.ZodNumber> =>
  z.number().int().min(1).max(QUOTA_MAX).default(DEFAULT_QUOTAS[name]).describe(description);

const quotasSchema = z.strictObject({
  liveRuns: createQuotaSchema("Runs of a tenant that have not ended.", "liveRuns"),
  liveChars: createQuotaSchema("Characters in the events of these runs.", "liveChars"),
  forksPerMinute: createQuotaSchema("Forks that a tenant may ask for in a minute.", "forksPerMinute"),
  runsPerRequest: createQuotaSchema(
    "Runs that come of one request: its children and forks.",
    "runsPerRequest",
  ),
  workAtOnce: createQuotaSchema(
    "Calls of models, tools and agents that are under way for a tenant; with more it starts no runs.",
    "workAtOnce",
  ),
  streams: createQuotaSchema("Event streams that a tenant has open.", "streams"),
  addressStreams: createQuotaSchema("Event streams of one address.", "addressStreams"),
  addressRequests: createQuotaSchema("Requests of one address that are not answered yet.", "addressRequests"),
});

/** The schema of the settings below `openwop`. */
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
    agents: z
      .array(z.string().min(1).max(BOUNDS.resourceCharsMax))
      .max(BOUNDS.openWopFoldersMax)
      .default([])
      .describe(
        "Folders with packs of agents (`pack.json` with `agents`), or one manifest file for each agent; relative ones are in OpenClaw's state folder.",
      ),
    modelClasses: z
      .record(z.string().min(1).max(BOUNDS.idCharsMax), z.string().min(1).max(BOUNDS.idCharsMax))
      .default({})
      .describe(
        "Models of these agents by the class that their manifests name, such as `reasoning`. Others get OpenClaw's own.",
      ),
    mcpServers: z
      .record(
        z
          .string()
          .max(BOUNDS.openWopServerCharsMax)
          .regex(/^[A-Za-z0-9_-]+$/),
        mcpServer,
      )
      .refine((servers) => Object.keys(servers).length <= BOUNDS.openWopOriginsMax)
      .default({})
      .describe("MCP servers, by name, whose tools these agents may be allowed as `mcp:<tool>`."),
    toolScopes: z
      .record(
        z.string().min(1).max(BOUNDS.idCharsMax),
        z.array(z.string().min(1).max(BOUNDS.idCharsMax)).max(BOUNDS.openWopOriginsMax),
      )
      .default({})
      .describe("Scopes that a token needs for a tool of these agents, by the tool's id."),
    mentions: mentionsSchema.prefault({}),
    coordinationsTenant: tenant
      .default("default")
      .describe("Holders of this tenant's tokens see the coordinations of OpenClaw's agents as runs."),
    baseUrl: z
      .url({ protocol: /^https?$/ })
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
    replayReinvokesModels: z
      .boolean()
      .default(false)
      .describe(
        "A replay of a run asks the model again, and fails where it refuses what it answered, or answers what it refused. Off: recorded answers only.",
      ),
    replayRetentionDays: z
      .number()
      .min(0)
      .max(REPLAY_RETENTION_DAYS_MAX)
      .default(WORKFLOW_BOUNDS.replayRetentionMs / DAY_MS)
      .describe(
        "For how many days after its end a run can be forked or replayed. What expired in its memory longer ago is deleted.",
      ),
    quotas: quotasSchema
      .prefault({})
      .describe(
        "How much of this host one tenant, one request or one address may take. More is refused with 429.",
      ),
    peers: z
      .array(z.url({ protocol: /^https?$/ }).max(BOUNDS.resourceCharsMax))
      .max(BOUNDS.openWopOriginsMax)
      .default([])
      .describe(
        "Other OpenWOP hosts that a run may name in its input `peerUrl`, by origin and path, besides those of `peerTokens` and of workflows.",
      ),
    peerTokens: z
      .record(origin, foreignToken)
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
/** Settings of the OpenWOP service in the gateway. */
export type OpenWopConfig = z.output<typeof openWopSchema>;
