import { describe, expect, it } from "vitest";
import {
  parseLedgerConfig,
  parsePluginConfig,
} from "../../src/agents/coordination/contracts/config/config.ts";

const wrapPhase1 = (config: object): unknown => ({ coordination: { phase1: config } });

describe("the plugin's configuration", () => {
  it.each([undefined, null, {}, { coordination: {} }, wrapPhase1({})])(
    "is off and has every default for %j",
    (value) => {
      const config = parsePluginConfig(value);
      expect(config).toMatchObject({
        enabled: false,
        strict: false,
        stepTimeoutMs: 86_400_000,
        settleMs: 3_000,
      });
      const { acknowledgeMs, sweepMs, contentRetentionDays } = config;
      for (const number of [acknowledgeMs, sweepMs, contentRetentionDays]) expect(number).toBeGreaterThan(0);
      expect(config.agents).toBeUndefined();
    },
  );

  it("keeps what is set", () => {
    const set = { enabled: true, strict: true, agents: ["main"], stepTimeoutMs: 1_000, settleMs: 0 };
    expect(parsePluginConfig(wrapPhase1(set))).toMatchObject(set);
  });

  it.each([
    [{ enabled: "yes" }, 'coordination.phase1.enabled: expected boolean, got string "yes"'],
    [{ strict: 1 }, "coordination.phase1.strict: expected boolean, got number 1"],
    [{ agents: "main" }, 'coordination.phase1.agents: expected array, got string "main"'],
    [{ agents: [""] }, 'coordination.phase1.agents[0]: expected at least 1 characters, got string ""'],
    [{ stepTimeoutMs: 999 }, "coordination.phase1.stepTimeoutMs: expected at least 1000, got number 999"],
    [{ settleMs: -1 }, "coordination.phase1.settleMs: expected at least 0, got number -1"],
    [{ acknowledgeMs: 0 }, "coordination.phase1.acknowledgeMs: expected at least 1000, got number 0"],
    [{ sweepMs: 5 }, "coordination.phase1.sweepMs: expected at least 1000, got number 5"],
    [{ sweepMs: 1e12 }, "coordination.phase1.sweepMs: expected at most 2678400000, got number 1000000000000"],
    [{ contentRetentionDays: 1.5 }, "coordination.phase1.contentRetentionDays: expected int, got number 1.5"],
    [{ enable: true }, 'coordination.phase1: expected no key "enable", got it'],
  ])("refuses %j and says what is wrong with it", (config, message) => {
    expect(() => parsePluginConfig(wrapPhase1(config))).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", recovery: "fix-config", message }),
    );
  });

  it("takes the address of a database without its password", () => {
    const ledger = {
      url: "postgres://coordination@db.example:5432/coordination?sslmode=verify-full",
      password: "${LEDGER_PASSWORD}",
    };
    expect(parsePluginConfig(wrapPhase1({ ledger, gateway: { id: "office-1" } }))).toMatchObject({
      ledger,
      gateway: { id: "office-1" },
    });
    expect(parseLedgerConfig(ledger)).toEqual(ledger);
    expect(parseLedgerConfig(undefined)).toEqual({});
  });

  it.each([
    ["mysql://db.example/coordination", "the address of a PostgreSQL database"],
    ["coordination/ledger.sqlite", "the address of a PostgreSQL database"],
    ["postgres://user:s3cret@db.example/coordination", "a URL without a password: put the password in"],
    ["postgres://db.example/coordination?password=s3cret", "a URL without a password: put the password in"],
    ["postgres://user:s3cret@[db.example/coordination", "a URL without a password: put the password in"],
  ])("refuses %s as the ledger's, and shows no password of it", (url, expected) => {
    for (const parse of [
      () => parsePluginConfig(wrapPhase1({ ledger: { url } })),
      () => parseLedgerConfig({ url }),
    ])
      expect(parse).toThrow(
        expect.objectContaining({
          code: "CONFIG_INVALID",
          message: expect.stringMatching(
            new RegExp(
              `^coordination\\.phase1\\.ledger\\.url: expected ${expected}[^]*, got something else$`,
              "u",
            ),
          ) as string,
        }),
      );
  });

  it.each(["", "-a", "a b", "a/b", "ä", "a".repeat(65)])("refuses %j as the name of a gateway", (id) => {
    expect(() => parsePluginConfig(wrapPhase1({ gateway: { id } }))).toThrow(
      "coordination.phase1.gateway.id",
    );
  });

  it("refuses a value that is no object, and keys beside the ones it knows", () => {
    expect(() => parsePluginConfig("on")).toThrow('(root): expected object, got string "on"');
    expect(() => parsePluginConfig({ phase1: {} })).toThrow('(root): expected no key "phase1", got it');
  });
});
