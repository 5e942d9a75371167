/** Where the gateway's ledger is, and what the gateway is called there. */
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { gatewaySchema } from "../../src/agents/coordination/contracts/config/ledger-config.ts";
import {
  createGatewayOwnerId,
  parseGatewayOwnerId,
} from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import {
  findLedgerPlace,
  nameAmongGateways,
  nameGateway,
  nameMachineOfFiles,
} from "../../src/plugins/ledger-setting.ts";
import { formatMachineName } from "../../src/agents/coordination/contracts/resource-names.ts";
import { createRuntimeSettings } from "../../src/plugins/runtime-settings.ts";

const STATE_DIR = join("/", "state");
const URL_WITHOUT_PASSWORD = "postgres://user@db.example:5432/coordination?pool_max=2";

function findPlace(ledger: Parameters<typeof findLedgerPlace>[0]): string {
  const variables: Readonly<Record<string, string>> = { LEDGER_PASSWORD: "p@ss/w:rd" };
  return findLedgerPlace(ledger, { stateDir: STATE_DIR, readVariable: (name) => variables[name] });
}

describe("the place of the gateway's ledger", () => {
  test("is a file in the state folder, or the database that is named", () => {
    expect(findPlace({})).toBe(join(STATE_DIR, "coordination", "ledger.sqlite"));
    expect(findPlace({ url: URL_WITHOUT_PASSWORD })).toBe(URL_WITHOUT_PASSWORD);
  });

  test.each(["${LEDGER_PASSWORD}", "p@ss/w:rd"])("has the password that %s stands for", (password) => {
    const url = new URL(findPlace({ url: URL_WITHOUT_PASSWORD, password }));
    expect(decodeURIComponent(url.password)).toBe("p@ss/w:rd");
    expect(url.host).toBe("db.example:5432");
  });

  test("has the password also where the server is reached by a socket", () => {
    const text = "postgres:///coordination?host=/run/postgresql&user=c";
    const url = new URL(findPlace({ url: text, password: "${LEDGER_PASSWORD}" }));
    expect(url.searchParams.get("password")).toBe("p@ss/w:rd");
  });

  test("is not known while its password is in a variable that is not set", () => {
    expect(() => findPlace({ url: URL_WITHOUT_PASSWORD, password: "${NOT_SET}" })).toThrow(
      expect.objectContaining({
        code: "CONFIG_INVALID",
        message: expect.stringContaining("${NOT_SET}, which the environment does not have") as string,
      }),
    );
  });
});

describe("the name of a gateway", () => {
  test("is the one that is set, or one of its machine and state folder that every ledger takes", () => {
    expect(nameGateway("office", STATE_DIR)).toBe("office");
    const name = nameGateway(undefined, STATE_DIR);
    expect(name).toBe(nameGateway(undefined, join(STATE_DIR, ".")));
    expect(name).not.toBe(nameGateway(undefined, join("/", "other")));
    expect(gatewaySchema.parse({ id: name })).toMatchObject({ id: name });
  });

  test("is used in a ledger on a server only", () => {
    expect(nameAmongGateways({ place: URL_WITHOUT_PASSWORD, gateway: "office" })).toBe("office");
    expect(nameAmongGateways({ place: findPlace({}), gateway: "office" })).toBeUndefined();
    expect(createRuntimeSettings(parsePluginConfig({}), undefined)).not.toHaveProperty("gateway");
    expect(createRuntimeSettings(parsePluginConfig({}), { gateway: "office" }).gateway).toBe("office");
  });

  test("is beside that of the machine, which files are of where machines share a ledger and no folders", () => {
    const machine = nameMachineOfFiles(URL_WITHOUT_PASSWORD, { sharedWorkspace: false });
    expect(machine).toBe(formatMachineName(hostname()));
    expect(nameMachineOfFiles(URL_WITHOUT_PASSWORD, { sharedWorkspace: true })).toBeUndefined();
    expect(nameMachineOfFiles(findPlace({}), { sharedWorkspace: false })).toBeUndefined();
    expect(parsePluginConfig({}).gateway).toMatchObject({ sharedWorkspace: false });
  });

  test("is found in its id as an owner, and in no other's", () => {
    expect(parseGatewayOwnerId(createGatewayOwnerId("office-1.example", "start/1"))).toBe("office-1.example");
    for (const other of ["serve-1", "gateway:", "gateway:/x", "driver:office/1"])
      expect(parseGatewayOwnerId(other)).toBeUndefined();
  });
});
