import { describe, expect, it } from "vitest";
import { formatManifest } from "../../scripts/manifest.ts";

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

interface Hint {
  readonly label: string;
  readonly help: string;
  readonly sensitive?: true;
}

const { configSchema, uiHints } = JSON.parse(formatManifest()) as {
  readonly configSchema: Schema;
  readonly uiHints: Readonly<Record<string, Hint>>;
};

/** The paths of all settings that have a name of their own and hold a value, as the host writes them. */
function listSettings(
  { properties = {}, additionalProperties, items, anyOf = [], oneOf = [] }: Schema,
  path = "",
): string[] {
  return [
    ...Object.entries(properties).flatMap(([name, inner]) => {
      const setting = path === "" ? name : `${path}.${name}`;
      return [...(inner.properties ? [] : [setting]), ...listSettings(inner, setting)];
    }),
    ...(typeof additionalProperties === "object" ? listSettings(additionalProperties, `${path}.*`) : []),
    ...(items ? listSettings(items, `${path}[]`) : []),
    ...[...anyOf, ...oneOf].flatMap((inner) => listSettings(inner, path)),
  ];
}

describe("the hints of the manifest", () => {
  it("say of every setting what it is called and what it is for", () => {
    const settings = [...new Set(listSettings(configSchema))];
    expect(settings.length).toBeGreaterThan(100);
    expect(settings.filter((path) => !uiHints[path]?.label || !uiHints[path].help)).toEqual([]);
  });

  it("tell the default of a setting that is one value, which the schema does not", () => {
    expect(uiHints["coordination.phase1.gates.confidenceThreshold"]?.help).toMatch(/ Default: 0\.7\.$/u);
    expect(uiHints["coordination.phase1.enabled"]?.help).toMatch(/ Default: false\.$/u);
    // With a default there the host would hand it over as if the operator had written it.
    expect(JSON.stringify(configSchema)).not.toMatch(/"default":(?!\{"(?:type|description)")/u);
  });

  it("keep secrets out of what the host shows", () => {
    const secrets = [
      "ledger.password",
      "escalations.webhooks.*.secret",
      "escalations.webhooks.*.url",
      "openwop.tokens[].token",
      "openwop.peerTokens.*",
      "openwop.mcpServers.*",
      "telemetry.headers.*",
      "acpAgents.*.env.*",
      "acpAgents.*.args[]",
      "gates.verifiers.*.env.*",
      "gates.verifiers.*.args[]",
      "policies.packs.*.settings.escalations.webhooks.*.secret",
      "policies.packs.*.settings.escalations.webhooks.*.url",
      "policies.packs.*.settings.gates.verifiers.*.env.*",
      "policies.packs.*.settings.gates.verifiers.*.args[]",
    ].map((path) => `coordination.phase1.${path}`);
    const sensitive = Object.entries(uiHints).flatMap(([path, hint]) => (hint.sensitive ? [path] : []));
    expect(sensitive.toSorted()).toEqual(secrets.toSorted());
  });

  it("name a setting by its place", () => {
    expect(uiHints["coordination.phase1.results.parentCharsMax"]).toMatchObject({
      label: "Results: parent chars max",
    });
  });
});
