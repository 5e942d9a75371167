/**
 * Owns: reading the agent packs of a folder (RFC 0003): a folder with a `pack.json` for each, or one file for each agent. Files
 * that a manifest refers to are read from its pack and from nowhere else. A folder with a wrong one is refused as a whole.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import {
  AGENT_BOUNDS,
  readAgentManifest,
  type AgentManifest,
  type InstalledAgent,
} from "../../../agents/coordination/contracts/workflows/agent-manifest.ts";
import { CoordinationError, createInputError } from "../../../agents/coordination/contracts/errors.ts";
import { describeProblems } from "../../../agents/coordination/contracts/validation.ts";
import { listFolder } from "./list-folder.ts";
import { readPackFile, readPackSchema } from "./pack-files.ts";
import { describeSyntaxProblems, isJsonOrYamlFile, readJsonOrYaml } from "./read-json-or-yaml.ts";

const PACK_FILES = ["pack.json", "pack.yaml", "pack.yml"];
const VERSION_OF_FILES = "0.0.0";

const name = z.string().min(1).max(256);
const packSchema = z.looseObject({
  name,
  version: z.string().min(1).max(64),
  agents: z.array(z.unknown()).max(AGENT_BOUNDS.agentsPerPackMax).default([]),
  /** Capabilities that the pack's agents need, or only like to have. */
  peerDependencies: z.record(name, z.unknown()).default({}),
});

/** A pack of agents in a folder. */
interface AgentPack {
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  readonly agents: readonly unknown[];
  readonly needs: readonly string[];
}

/**
 * Returns the agents of all packs and manifests in a folder. @throws CoordinationError `INPUT_INVALID` naming every
 * pack that cannot be installed, and why, also two agents of one id
 */
export async function readAgentFolder(folder: string): Promise<InstalledAgent[]> {
  const agents = new Map<string, InstalledAgent>();
  const problems: string[] = [];
  for (const entry of await listPackEntries(folder)) {
    const read = await readPackOrManifest(join(folder, entry)).catch(convertToProblem);
    if ("problem" in read) problems.push(`${entry}: ${read.problem}`);
    else
      for (const agent of read.agents) {
        const { agentId } = agent.manifest;
        if (agents.has(agentId)) problems.push(`${entry}: there is another agent ${agentId} in the folder`);
        agents.set(agentId, agent);
      }
  }
  if (agents.size > AGENT_BOUNDS.agentsMax)
    problems.push(`there are ${agents.size} agents, and at most ${AGENT_BOUNDS.agentsMax} can be installed`);
  if (problems.length > 0) throw createInputError(`${folder}\n  ${problems.join("\n  ")}`);
  return [...agents.values()];
}

/** The agents that were read, or why they could not be. */
type AgentReading = { readonly agents: readonly InstalledAgent[] } | { readonly problem: string };

/** Returns what an error of reading says as a problem of the entry; throws any other error on. */
function convertToProblem(error: unknown): AgentReading {
  if (error instanceof CoordinationError) return { problem: error.message };
  if (error instanceof Error && "code" in error)
    return { problem: `it cannot be read (${String(error.code)})` };
  throw error;
}

/**
 * Lists the entries of a folder that may be packs, sorted: all but hidden ones. Throws where there are more entries
 * than packs may be installed.
 */
async function listPackEntries(folder: string): Promise<string[]> {
  const names = await listFolder(folder);
  if (names.length > AGENT_BOUNDS.packsMax)
    throw createInputError(
      `${folder}: there are ${names.length} entries, and at most ${AGENT_BOUNDS.packsMax} packs can be installed`,
    );
  return names.filter((entry) => !entry.startsWith("."));
}

/** Reads a folder as a pack and a file as the manifest of one agent; other files hold no agents. */
async function readPackOrManifest(path: string): Promise<AgentReading> {
  const isFolder = (await stat(path)).isDirectory();
  if (isFolder) return readPackFolder(path);
  return isJsonOrYamlFile(path) ? readManifestFile(path) : { agents: [] };
}

async function readPackFolder(folder: string): Promise<AgentReading> {
  const file = await findPackFile(folder);
  if (file === undefined) return { problem: "there is no pack.json in it" };
  const loaded = await readJsonOrYaml(file, "an agent pack");
  if (!loaded.ok) return { problem: describeSyntaxProblems(loaded.problems) };
  const parsed = packSchema.safeParse(loaded.value);
  if (!parsed.success) return { problem: `pack.json: ${describeFirstIssue(parsed.error)}` };
  const { name: packName, version, agents, peerDependencies } = parsed.data;
  const needs = Object.keys(peerDependencies);
  return loadPackAgents({ folder: await realpath(folder), name: packName, version, agents, needs });
}

/** Returns the path of the `pack` file of a folder, in JSON or YAML; `undefined` where it has none. */
async function findPackFile(folder: string): Promise<string | undefined> {
  const names = await readdir(folder);
  const found = PACK_FILES.find((file) => names.includes(file));
  return found === undefined ? undefined : join(folder, found);
}

function describeFirstIssue({ issues }: z.ZodError): string {
  const [issue] = issues;
  return issue ? `${issue.path.join(".") || "(root)"}: ${issue.message}` : "it is no pack";
}

/** Reads the manifest of one agent, whose files are beside it, as a pack of that one agent. */
async function readManifestFile(file: string): Promise<AgentReading> {
  const loaded = await readJsonOrYaml(file, "an agent manifest");
  if (!loaded.ok) return { problem: describeSyntaxProblems(loaded.problems) };
  const { agentId } = (loaded.value ?? {}) as { readonly agentId?: unknown };
  const packName = typeof agentId === "string" && agentId !== "" ? agentId : "agent";
  const folder = await realpath(join(file, ".."));
  return loadPackAgents({
    folder,
    name: packName,
    version: VERSION_OF_FILES,
    agents: [loaded.value],
    needs: [],
  });
}

/**
 * Loads all agents of a pack; returns the first problem of a manifest or of its agent's id, and throws where a file
 * that it refers to cannot be had.
 */
async function loadPackAgents(pack: AgentPack): Promise<AgentReading> {
  const agents: InstalledAgent[] = [];
  for (const [index, value] of pack.agents.entries()) {
    const parsed = readAgentManifest(value);
    if (!parsed.ok) return { problem: `agents[${index}]: ${describeProblems(parsed.problems)}` };
    if (!isOfPack(parsed.value, pack))
      return {
        problem: `agents[${index}]: agentId: expected a name below ${pack.name}., got ${parsed.value.agentId}`,
      };
    agents.push(await loadAgent(pack, parsed.value));
  }
  return { agents };
}

/**
 * True where the agent's id is the pack's name, or begins with it and a dot (RFC 0003). So no pack takes another one's
 * names; a single file is a pack of its own name.
 */
function isOfPack({ agentId }: AgentManifest, { name: packName }: AgentPack): boolean {
  return agentId === packName || agentId.startsWith(`${packName}.`);
}

/** @throws CoordinationError `INPUT_INVALID` where something that it refers to cannot be had. */
async function loadAgent(
  { folder, needs, ...pack }: AgentPack,
  manifest: AgentManifest,
): Promise<InstalledAgent> {
  const { systemPrompt, systemPromptRef, handoff = {}, requiresCapabilities = [], evalSuiteRef } = manifest;
  const at = { folder, agentId: manifest.agentId };
  const required = [...new Set([...requiresCapabilities, ...needs])];
  const prompt =
    systemPrompt ?? (await readPackFile({ ...at, key: "systemPromptRef" }, systemPromptRef ?? ""));
  const { taskSchemaRef, returnSchemaRef } = handoff;
  // It is not run here, and it must be there.
  if (evalSuiteRef !== undefined) await readPackFile({ ...at, key: "evalSuiteRef" }, evalSuiteRef);
  return {
    packName: pack.name,
    packVersion: pack.version,
    systemPrompt: prompt,
    manifest: { ...manifest, ...(required.length > 0 && { requiresCapabilities: required }) },
    ...(taskSchemaRef !== undefined && {
      taskSchema: await readPackSchema({ ...at, key: "handoff.taskSchemaRef" }, taskSchemaRef),
    }),
    ...(returnSchemaRef !== undefined && {
      returnSchema: await readPackSchema({ ...at, key: "handoff.returnSchemaRef" }, returnSchemaRef),
    }),
  };
}
