/** Owns: Ed25519 keys in files, and signatures with them. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
  type KeyObject,
} from "node:crypto";
import { closeSync, fstatSync, readFileSync, rmSync } from "node:fs";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";
import { createWholeFile, isNameTaken } from "../../platform/whole-file.ts";
import { findKeyFileFault, openKeyFile } from "./key-file.ts";

const READABLE_BY_OTHERS = 0o077;
const KEY_BYTES_MAX = 10_000;

export interface SigningKey {
  /** SPKI, DER, base64. */
  readonly publicKey: string;
  /** base64 */
  readonly sign: (text: string) => string;
}

/**
 * Creates an Ed25519 key pair in two new files, `path` (private; PKCS 8, PEM, mode 0600) and `path`.pub (public; SPKI,
 * PEM), and returns the path of the latter. @throws CoordinationError `INPUT_INVALID` where one of them is there
 */
export function createSigningKeyFiles(path: string): string {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const publicPath = `${path}.pub`;
  createKeyFile(path, privateKey.export({ type: "pkcs8", format: "pem" }).toString());
  try {
    createKeyFile(publicPath, publicKey.export({ type: "spki", format: "pem" }).toString());
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
  return publicPath;
}

function createKeyFile(path: string, text: string): void {
  try {
    createWholeFile(path, text);
  } catch (cause) {
    const problem = isNameTaken(cause)
      ? "is there already, and a key is never overwritten; name another file"
      : `cannot be written (${readSystemErrorCode(cause) ?? "?"})`;
    throw createKeyError(path, problem);
  }
}

/**
 * Returns the public key of a private key's file, and the function that signs texts with it. @throws CoordinationError
 * `INPUT_INVALID` for a file that others may read or write, or that holds no Ed25519 key
 */
export function readSigningKey(path: string): SigningKey {
  const key = parseEd25519Key(path, () => createPrivateKey(readPrivateKeyText(path)));
  return {
    publicKey: formatPublicKey(createPublicKey(key)),
    sign: (text) => sign(null, Buffer.from(text), key).toString("base64"),
  };
}

/**
 * Returns the Ed25519 public key of a PEM text in the form in which ledger anchors name it. `name`: the key's file,
 * for errors. @throws CoordinationError `INPUT_INVALID` for another key, and for a private one
 */
export function parsePublicKey(text: string, name: string): string {
  if (text.includes("PRIVATE KEY"))
    throw createKeyError(name, "is a private key; name the public one, which ends in .pub");
  return formatPublicKey(parseEd25519Key(name, () => createPublicKey(text)));
}

/** A text, its signature, and the public key to check it with. */
export interface SignedText {
  readonly text: string;
  /** SPKI, DER, base64. */
  readonly publicKey: string;
  /** base64 */
  readonly signature: string;
}

/**
 * Returns whether a signature of a text was made with the private key of a public one; false for a key that cannot be
 * read.
 */
export function isSignedBy({ text, publicKey, signature }: SignedText): boolean {
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, "base64"), type: "spki", format: "der" });
    if (key.asymmetricKeyType !== "ed25519") return false;
    return verify(null, Buffer.from(text), key, Buffer.from(signature, "base64"));
  } catch {
    return false;
  }
}

/** Reads the text of a private key, whose file nobody else may read or write. */
function readPrivateKeyText(path: string): Buffer {
  const file = openPrivateFile(path);
  try {
    const facts = fstatSync(file);
    const problem = findKeyFileFault(facts);
    if (problem !== undefined) throw createKeyError(path, problem);
    if ((facts.mode & READABLE_BY_OTHERS) !== 0)
      throw createKeyError(path, "may be read by other users; make a new key, for this one may be known");
    if (facts.size > KEY_BYTES_MAX) throw createKeyError(path, "is no Ed25519 key in PEM");
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

function openPrivateFile(path: string): number {
  let file: number | undefined;
  try {
    file = openKeyFile(path);
  } catch (cause) {
    if (cause instanceof CoordinationError) throw createKeyError(path, "is a link; name the file itself");
    throw createKeyError(path, `cannot be read (${readSystemErrorCode(cause) ?? "?"})`);
  }
  if (file !== undefined) return file;
  throw createKeyError(path, "is not there; `ledger key FILE` makes a key");
}

/**
 * Returns the key that `parse` makes. Throws `INPUT_INVALID` where it makes none, or one of another kind. `name`: of
 * the file, for the error.
 */
function parseEd25519Key(name: string, parse: () => KeyObject): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = parse();
  } catch (error) {
    if (error instanceof CoordinationError) throw error;
  }
  if (key?.asymmetricKeyType === "ed25519") return key;
  throw createKeyError(name, "is no Ed25519 key in PEM without a passphrase");
}

function formatPublicKey(key: KeyObject): string {
  return key.export({ type: "spki", format: "der" }).toString("base64");
}

function createKeyError(name: string, problem: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", `${name} ${problem}`);
}
