import { describe, expect, it, vi } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { readBearerTokens } from "../../src/plugins/compose-openwop.ts";
import { formatOpenWopBaseUrl, readOpenWopPath } from "../../src/plugins/openclaw/openwop/openwop-address.ts";
import { registerOpenWopRoute } from "../../src/plugins/openclaw/register-routes.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { DEFAULT_QUOTAS } from "../../src/agents/coordination/contracts/workflows/quotas.ts";

const TOKEN = "a-token-that-is-long-enough";

const parseOpenwop = (openwop: object) =>
  parsePluginConfig({ coordination: { phase1: { openwop } } }).openwop;

describe("the configuration of OpenWOP", () => {
  it("is off where nothing is said", () => {
    expect(parsePluginConfig({}).openwop).toEqual({
      enabled: false,
      tokens: [],
      workflows: [],
      coordinationsTenant: "default",
      agents: [],
      modelClasses: {},
      mcpServers: {},
      toolScopes: {},
      mentions: { scopes: [], waitSeconds: 60 },
      quotas: DEFAULT_QUOTAS,
      replayReinvokesModels: false,
      replayRetentionDays: 7,
      allowPrivate: [],
      peers: [],
      peerTokens: {},
    });
  });

  it("is refused without a token, with the reason", () => {
    expect(() => parseOpenwop({ enabled: true })).toThrow(
      /openwop\.tokens: expected at least one token .*nobody could be let in/,
    );
    expect(parseOpenwop({ enabled: true, tokens: [{ token: TOKEN }] }).tokens).toEqual([
      { token: TOKEN, tenant: "default" },
    ]);
  });

  it.each(["localhost:4096", "ftp://example.org", "file:///etc"])(
    "is not reached at %s, which is no address of HTTP",
    (baseUrl) => {
      expect(() => parseOpenwop({ baseUrl })).toThrow(/openwop\.baseUrl/);
      expect(parseOpenwop({ baseUrl: "https://example.org/api" }).baseUrl).toBe("https://example.org/api");
    },
  );

  it.each([-1, 3_651, "7"])("keeps runs for replays for no time such as %j", (replayRetentionDays) => {
    expect(() => parseOpenwop({ replayRetentionDays })).toThrow(/replayRetentionDays/);
    expect(parseOpenwop({ replayRetentionDays: 0.5 }).replayRetentionDays).toBe(0.5);
  });

  it("takes a variable in place of a token, and says nothing of a token that it refuses", () => {
    expect(parseOpenwop({ enabled: true, tokens: [{ token: "${T}" }] }).tokens).toMatchObject([
      { token: "${T}" },
    ]);
    expect(() => parseOpenwop({ tokens: [{ token: "too-short-5ab" }] })).toThrow(/^(?!.*5ab)/);
    expect(() => parseOpenwop({ tokens: [{ token: TOKEN, tenant: "not a tenant" }] })).toThrow(/tenant/);
  });

  it.each([
    ["is not set", undefined],
    ["is short", "short"],
    ["is no word", "two words that are long enough"],
  ])("lets nobody in by a variable that %s", (_how, value) => {
    const config = parseOpenwop({ enabled: true, tokens: [{ token: "${T}", tenant: "acme" }] });
    expect(() => readBearerTokens(config, () => value)).toThrow(/tenant acme is not set, or is not a word/);
    expect(readBearerTokens(config, () => TOKEN)).toEqual([{ token: TOKEN, tenant: "acme" }]);
  });
});

describe("the addresses that OpenWOP calls", () => {
  it.each(["ftp://tools.example", "file:///etc/passwd", "mailto:a@b.example"])(
    "are addresses of HTTP, which %s is not",
    (url) => {
      expect(() => parseOpenwop({ mcpServers: { tools: url } })).toThrow(/openwop\.mcpServers\.tools/);
      const webhooks = { ops: { url, secret: TOKEN } };
      for (const escalations of [{ webhooks }, { answerBaseUrl: url }])
        expect(() => parsePluginConfig({ coordination: { phase1: { escalations } } })).toThrow(/escalations/);
    },
  );

  it.each(["https://user:pa55@tools.example/mcp", "https://user@tools.example/mcp"])(
    "hold no user or password, because %s is never called",
    (url) => {
      expect(() => parseOpenwop({ mcpServers: { tools: url } })).toThrow(
        /^(?!.*pa55).*openwop\.mcpServers\.tools: expected .*without a user and password.*peerTokens/,
      );
    },
  );

  it("may ask for a token of any length, which stands under an origin that can be called", () => {
    const peerTokens = { "https://peer.example": "short" };
    expect(parseOpenwop({ peerTokens }).peerTokens).toEqual(peerTokens);
    expect(() => parseOpenwop({ peerTokens: { "https://peer.example": "two words" } })).toThrow(/peerTokens/);
    for (const origin of ["https://peer.example:99999", "https://[peer"]) {
      expect(() => parseOpenwop({ peerTokens: { [origin]: "a" } })).toThrow(/peerTokens/);
      expect(() => parseOpenwop({ allowPrivate: [origin] })).toThrow(/allowPrivate/);
    }
  });
});

it("lets nobody in by a variable within other text that is not set", () => {
  const config = parseOpenwop({ tokens: [{ token: "prefix-${NOT_SET_HERE}", tenant: "acme" }] });
  expect(() => readBearerTokens(config, () => undefined)).toThrow(/tenant acme is not set/);
});

it("tells two holders of one token apart for nobody", () => {
  const config = parseOpenwop({ tokens: [{ token: TOKEN }, { token: "${T}", tenant: "acme" }] });
  expect(() => readBearerTokens(config, () => TOKEN)).toThrow(/two tokens are the same/);
});

describe("the address of OpenWOP", () => {
  const findBaseUrl = (gateway: object, env = {}, baseUrl?: string) =>
    formatOpenWopBaseUrl(baseUrl, { config: { gateway }, env });

  it("is where the gateway listens, or where the operator says", () => {
    expect(findBaseUrl({ port: 4_100 })).toBe("http://127.0.0.1:4100/coordination/openwop");
    expect(findBaseUrl({})).toBe("http://127.0.0.1:18789/coordination/openwop");
    expect(findBaseUrl({ port: 4_100 }, { OPENCLAW_GATEWAY_PORT: "4200" })).toContain(":4200/");
    expect(findBaseUrl({}, {}, "https://wop.example/x/")).toBe("https://wop.example/x");
  });

  it("is https:// where the gateway speaks TLS", () => {
    const origin = "127.0.0.1:18789/coordination/openwop";
    expect(findBaseUrl({ tls: { enabled: true } })).toBe(`https://${origin}`);
    expect(findBaseUrl({ tls: { enabled: false } })).toBe(`http://${origin}`);
    expect(findBaseUrl({ tls: {} })).toBe(`http://${origin}`);
  });

  it.each([
    ["/coordination/openwop", "/"],
    ["/coordination/openwop?x=1", "/?x=1"],
    ["/coordination/openwop/v1/runs?x=1", "/v1/runs?x=1"],
    ["/Coordination/OpenWOP/.well-known/openwop", "/.well-known/openwop"],
    ["/%63oordination/openwop/v1/runs", undefined],
    ["/coordination/answers/ops", undefined],
  ])("takes %s for %s", (url, path) => {
    expect(readOpenWopPath(url)).toBe(path);
  });
});

describe("the route of OpenWOP", () => {
  const registerWith = (openwop?: object) => {
    const registerHttpRoute = vi.fn();
    const pluginConfig = { coordination: { phase1: { enabled: true, ...(openwop && { openwop }) } } };
    registerOpenWopRoute({ pluginConfig, registerHttpRoute } as unknown as OpenClawPluginApi);
    return registerHttpRoute.mock.calls.map(([route]) => route as object);
  };

  it("is there where it is wanted, and nowhere else", () => {
    expect(registerWith()).toEqual([]);
    expect(registerWith({ enabled: false, tokens: [{ token: TOKEN }] })).toEqual([]);
    expect(registerWith({ enabled: true, tokens: [{ token: TOKEN }] })).toMatchObject([
      { path: "/coordination/openwop", match: "prefix", auth: "plugin" },
    ]);
  });
});
