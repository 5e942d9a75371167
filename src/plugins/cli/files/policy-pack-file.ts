/** Owns: finding policy packs: those that ship by their names, others by their files, and what they extend. */
import { readdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { policyNameSchema } from "../../../agents/coordination/contracts/fact-fields.ts";
import {
  parsePolicyPack,
  type PolicyPackFile,
} from "../../../agents/coordination/contracts/config/policy-pack.ts";
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { combinePacks, type PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import { findPackageFile } from "../../../platform/package-files.ts";
import { assertPath } from "./named-path.ts";
import { readPolicyValue } from "./policy-file.ts";

const ENDING = ".yaml";

/** Returns the names of the policy packs that ship with this package, sorted. */
export function listShippedPacks(): string[] {
  return readdirSync(findPackageFile("policies/"))
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length))
    .toSorted();
}

/**
 * Loads a pack with all that it extends.
 *
 * @param pack the name of one that ships, the path of a file (JSON or YAML), or `-` for stdin
 * @throws CoordinationError `INPUT_INVALID`
 */
export async function loadPolicyPack(pack: string): Promise<PolicyPack> {
  return combinePacks(await loadPackChain(pack));
}

/** Loads a pack and what it extends, the one that extends none first. */
async function loadPackChain(pack: string): Promise<[PolicyPackFile, ...PolicyPackFile[]]> {
  const begin = resolvePackPath(pack, process.cwd());
  let files: [PolicyPackFile, ...PolicyPackFile[]] = [await readPolicyPackFile(begin)];
  const paths = [begin];
  for (let [first] = files; first.extends !== undefined; [first] = files) {
    const last = paths.at(-1) ?? begin;
    const next = resolvePackPath(first.extends, last === STDIN ? process.cwd() : dirname(last));
    if (paths.includes(next))
      throw createChainError(
        last,
        `it extends ${first.extends}, which comes back to it; remove one \`extends\``,
      );
    if (paths.length === BOUNDS.policyChainMax)
      throw createChainError(
        last,
        `${BOUNDS.policyChainMax} packs extend each other already, and no more may`,
      );
    paths.push(next);
    files = [await readPolicyPackFile(next), ...files];
  }
  return files;
}

const STDIN = "-";

/**
 * Returns the path of a pack, from `folder` where it is a file; `-` stands for the standard input. Throws for the name
 * of a pack that does not ship.
 */
function resolvePackPath(pack: string, folder: string): string {
  if (pack === STDIN) return STDIN;
  assertPath(pack);
  if (!policyNameSchema.safeParse(pack).success) return resolve(folder, pack);
  const shipped = listShippedPacks();
  if (shipped.includes(pack)) return fileURLToPath(findPackageFile(`policies/${pack}${ENDING}`));
  throw new CoordinationError(
    "INPUT_INVALID",
    `there is no policy pack ${pack}: ${shipped.join(", ")} ship, and of a file give the path (./${pack}.yaml)`,
  );
}

async function readPolicyPackFile(path: string): Promise<PolicyPackFile> {
  const value = await readPolicyValue(path, "a policy pack");
  try {
    return parsePolicyPack(value);
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    throw new CoordinationError("INPUT_INVALID", `${path}: ${error.message}`);
  }
}

function createChainError(path: string, why: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", `${path}: ${why}`);
}
