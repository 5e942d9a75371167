/** Owns: a certificate of a host on this machine that signs itself, written byte by byte (X.509 in DER), so that no program is needed. */
import { generateKeyPairSync, sign } from "node:crypto";

const SEQUENCE = 0x30;
const SET = 0x31;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const BOOLEAN = 0x01;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const UTF8_STRING = 0x0c;
const VERSION_TAG = 0xa0;
const EXTENSIONS_TAG = 0xa3;
const ADDRESS_TAG = 0x87;

// Names of the standard as their DER has them, the tag and the length of each included.
const COMMON_NAME = Buffer.from("0603550403", "hex");
const ALTERNATIVE_NAME = Buffer.from("0603551d11", "hex");
const BASIC_CONSTRAINTS = Buffer.from("0603551d13", "hex");
const ECDSA_WITH_SHA256 = Buffer.from("06082a8648ce3d040302", "hex");

/** Writes a value behind its tag and length. */
function writeDer(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...listLengthBytes(content.length)]), content]);
}

/** Lists the bytes of a length, as few as there can be. */
function listLengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

// No clock decides whether the certificate is valid.
const BEGIN = writeDer(UTC_TIME, Buffer.from("200101000000Z"));
const END = writeDer(GENERALIZED_TIME, Buffer.from("21000101000000Z"));

/** Writes a bit string, all of whose bits are used. */
function writeBits(content: Uint8Array): Buffer {
  return writeDer(BIT_STRING, Buffer.from([0]), content);
}

function writeExtension(name: Buffer, value: Buffer): Buffer {
  return writeDer(SEQUENCE, name, writeDer(OCTET_STRING, value));
}

/** Creates a certificate of an IPv4 address, which is valid until 2100, and its key, both as PEM. */
export function createSelfSignedCertificate(address: string): {
  readonly key: string;
  readonly cert: string;
} {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const algorithm = writeDer(SEQUENCE, ECDSA_WITH_SHA256);
  const commonName = writeDer(SEQUENCE, COMMON_NAME, writeDer(UTF8_STRING, Buffer.from(address)));
  const name = writeDer(SEQUENCE, writeDer(SET, commonName));
  const addressBytes = Buffer.from(address.split(".").map(Number));
  const isAuthority = writeDer(SEQUENCE, writeDer(BOOLEAN, Buffer.from([0xff])));
  const body = writeDer(
    SEQUENCE,
    writeDer(VERSION_TAG, writeDer(INTEGER, Buffer.from([2]))),
    writeDer(INTEGER, Buffer.from([1])),
    algorithm,
    name,
    writeDer(SEQUENCE, BEGIN, END),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    writeDer(
      EXTENSIONS_TAG,
      writeDer(
        SEQUENCE,
        writeExtension(ALTERNATIVE_NAME, writeDer(SEQUENCE, writeDer(ADDRESS_TAG, addressBytes))),
        writeExtension(BASIC_CONSTRAINTS, isAuthority),
      ),
    ),
  );
  const signature = sign("sha256", body, privateKey);
  const certificate = writeDer(SEQUENCE, body, algorithm, writeBits(signature));
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString("base64")}\n-----END CERTIFICATE-----\n`,
  };
}
