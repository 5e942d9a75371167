/**
 * Owns: what an argument makes a program write that otherwise writes nothing: `git log --output=x`, `find -delete`,
 * `pytest --junitxml=x`. Known are the options of programs that agents use, and names of options that say it themselves.
 * Does not own: what a program does whatever its arguments are; an operator says that.
 */
import type { ShellWord, SimpleCommand } from "./shell-words.ts";

/** What arguments add to what was declared of a command. */
export interface ArgumentWrites {
  /** Files and folders, from the command's working directory. */
  readonly outputs: readonly string[];
  /** They change something that they do not name. */
  readonly hasMore: boolean;
}

interface WritingOptions {
  /** Options whose value is what is written. A letter may be one of several behind one dash. */
  readonly files?: readonly string[];
  /** Options that change what they do not name, or run something. */
  readonly acts?: readonly string[];
  /** Arguments that are a program of their own and change something. */
  readonly scripts?: RegExp;
}

/** Every argument may name another program to run. */
const RUNS_ANOTHER = new Set([
  ..."bunx busybox chronic command doas env eval exec flock ionice nice nohup npx parallel setsid stdbuf sudo".split(
    " ",
  ),
  ..."time timeout uvx watch xargs".split(" "),
]);

const RUNS_CODE: WritingOptions = {
  acts: [
    "-c",
    "-e",
    "-p",
    "-i",
    "-m",
    "-r",
    "--eval",
    "--print",
    "--require",
    "--import",
    "--prof",
    "--cpu-prof",
  ],
};
const AWK: WritingOptions = { acts: ["-i", "--include"], scripts: /system\s*\(|\||>/u };

const BY_PROGRAM: Readonly<Record<string, WritingOptions>> = {
  awk: AWK,
  bash: RUNS_CODE,
  curl: {
    files: ["-o", "-D", "-c", "--dump-header", "--cookie-jar", "--trace", "--trace-ascii", "--stderr"],
    acts: [
      "-O",
      "-J",
      "-K",
      "-T",
      "-d",
      "-F",
      "-X",
      "--remote-name",
      "--remote-name-all",
      "--config",
      "--upload-file",
    ],
  },
  cargo: { acts: ["--config", "--target-dir"] },
  date: { acts: ["-s", "--set"] },
  eslint: { files: ["-o", "--cache-location"], acts: ["--fix", "--cache"] },
  find: {
    files: ["-fprint", "-fprint0", "-fprintf", "-fls"],
    acts: ["-delete", "-exec", "-execdir", "-ok", "-okdir"],
  },
  gawk: AWK,
  git: { files: ["-o"], acts: ["-c", "--ext-diff", "--exec-path", "--upload-pack", "--receive-pack", "-x"] },
  go: {
    files: ["-o", "-coverprofile", "-cpuprofile", "-memprofile", "-blockprofile", "-trace"],
    acts: ["-exec", "-toolexec"],
  },
  jest: { acts: ["-u", "--coverage", "--ci=false"] },
  less: { files: ["-o", "-O"], acts: ["-k"] },
  mawk: AWK,
  node: RUNS_CODE,
  openssl: { files: ["-out", "-keyout"] },
  perl: RUNS_CODE,
  prettier: { acts: ["-w"] },
  pytest: {
    files: ["--junitxml", "--junit-xml", "--html", "--basetemp", "--resultlog"],
    acts: ["-o", "-p", "--debug", "--pastebin", "--cov", "--cov-report"],
  },
  python: RUNS_CODE,
  python3: RUNS_CODE,
  rg: { acts: ["--pre", "--hostname-bin"] },
  ruby: RUNS_CODE,
  sed: { acts: ["-i", "-f"], scripts: /(?:^|[\s;{}\d$/!,])[wWe](?:\s|$)/u },
  sh: RUNS_CODE,
  sort: { files: ["-o"], acts: ["--compress-program"] },
  tsc: { acts: ["-b", "-d", "-p", "--build", "--incremental", "--declaration", "--init"] },
  vitest: { acts: ["-u", "--coverage"] },
  wget: { files: ["-O", "-o", "-a", "-P"], acts: ["-r", "-m", "-c", "-N", "--mirror", "--post-file"] },
  xmllint: { files: ["-o"] },
  yq: { acts: ["-i", "-s"] },
  zsh: RUNS_CODE,
};

/** Words of an option's name that say that its value is written. */
const NAMES_FILE = new Set(
  "out output outfile outdir outputfile outputdir logfile junitxml tsbuildinfofile".split(" "),
);
/** Words of an option's name that say that something is changed. */
const SAYS_CHANGE = new Set(
  "append clean create delete dump edit exec execute fix force inplace install log overwrite purge remove save update upgrade write".split(
    " ",
  ),
);

/** Finds what the arguments write that lie in these ranges of the command: what an operator left open. */
export function findArgumentWrites(
  commands: readonly SimpleCommand[],
  isOpen: (word: ShellWord) => boolean,
): ArgumentWrites {
  const outputs: string[] = [];
  let hasMore = false;
  for (const words of commands) {
    const programs = findPrograms(words);
    for (const [index, word] of words.entries()) {
      if (!isOpen(word) || index === 0) continue;
      const found = readArgument(word, words[index + 1], programs);
      if (found === "acts") hasMore = true;
      else if (found !== undefined) outputs.push(found.file);
    }
  }
  return { outputs, hasMore };
}

interface Programs {
  readonly runsAnother: boolean;
  readonly options: readonly WritingOptions[];
}

/** Behind `npx` and its kin, and behind `python -m`, any word may be the program. */
function findPrograms(words: SimpleCommand): Programs {
  const names = words.map(({ text }) => text.slice(text.lastIndexOf("/") + 1));
  return {
    runsAnother: RUNS_ANOTHER.has(names[0] ?? ""),
    options: names.flatMap((name) => (Object.hasOwn(BY_PROGRAM, name) ? (BY_PROGRAM[name] ?? []) : [])),
  };
}

type ArgumentWrite = { readonly file: string } | "acts" | undefined;

function readArgument(
  word: ShellWord,
  next: ShellWord | undefined,
  { runsAnother, options }: Programs,
): ArgumentWrite {
  const { text } = word;
  if (runsAnother || options.some(({ scripts }) => scripts?.test(text))) return "acts";
  if (isOption(text)) return readOption(word, next, options);
  return word.isExpanded && mayBeOption(word) ? "acts" : undefined;
}

function isOption(text: string): boolean {
  return text.startsWith("-") && text !== "-" && text !== "--";
}

function readOption(
  word: ShellWord,
  next: ShellWord | undefined,
  options: readonly WritingOptions[],
): ArgumentWrite {
  const { text } = word;
  const { name, value } = splitOption(text);
  const fileOptions = options.flatMap(({ files = [] }) => files);
  if (options.some(({ acts = [] }) => hasOption(acts, name))) return "acts";
  if (fileOptions.includes(name) || isNamingFile(name))
    return createFile(value === undefined ? next : { ...word, text: value });
  const isAttached = fileOptions.some((option) => option.length === 2 && text.startsWith(option));
  if (isAttached && !name.startsWith("--")) return createFile({ ...word, text: text.slice(2) });
  return hasOption(fileOptions, name) || isSayingChange(name) ? "acts" : undefined;
}

/** `$FLAGS` may be any option; `*.ts` only where a file has the name of one. */
function mayBeOption({ text }: ShellWord): boolean {
  return text.startsWith("$") || text.startsWith("`");
}

function splitOption(text: string): { readonly name: string; readonly value?: string } {
  const at = text.indexOf("=");
  return at === -1 ? { name: text } : { name: text.slice(0, at), value: text.slice(at + 1) };
}

/** `-nro` has `-o` in it, and `-i.bak` is `-i`. */
function hasOption(options: readonly string[], name: string): boolean {
  if (options.includes(name)) return true;
  const isShort = /^-[^-]/u.test(name);
  return isShort && options.some((option) => option.length === 2 && name.slice(1).includes(option.charAt(1)));
}

function isNamingFile(name: string): boolean {
  return listWordsOf(name).some((word) => NAMES_FILE.has(word));
}

function isSayingChange(name: string): boolean {
  return listWordsOf(name).some((word) => SAYS_CHANGE.has(word));
}

/** The words of a long option, joined ones too: `--outputFile`, `--in-place`, `-coverprofile`. */
function listWordsOf(name: string): string[] {
  const bare = name.replace(/^-+/u, "");
  if (bare.length < 3) return [];
  const words = bare.split(/[-_.]|(?<=[a-z])(?=[A-Z])/u).map((word) => word.toLowerCase());
  return [...words, words.join("")];
}

function createFile(word: ShellWord | undefined): ArgumentWrite {
  if (!word || word.isExpanded || word.text === "") return "acts";
  // A dash is the standard output, and so is what it is called as a file.
  return word.text === "-" || word.text === "/dev/stdout" || word.text === "/dev/null"
    ? undefined
    : { file: word.text };
}
