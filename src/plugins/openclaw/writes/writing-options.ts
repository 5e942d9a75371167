/**
 * Owns: what an argument makes a program write that otherwise writes nothing: `git log --output=x`, `find -delete`,
 * `pytest --junitxml=x`. Known are the options of programs that agents use, and names of options that say it themselves.
 * Does not own: what a program does whatever its arguments are; an operator says that.
 */
import { isAbsolute } from "node:path";
import { listWritingScripts } from "./sed-script.ts";
import type { ShellWord, SimpleCommand } from "./shell-words.ts";

/** Writes that arguments add to the declared ones of a command. */
export interface ArgumentWrites {
  /** Files and folders, from the command's working directory. */
  readonly outputs: readonly string[];
  /** They change something that they do not name. */
  readonly hasMore: boolean;
}

interface WritingOptions {
  /** Options whose value is what is written. A letter may be one of several behind one dash. */
  readonly files?: readonly string[];
  /** The beginning of an argument without a dash whose rest names the written file. */
  readonly operand?: string;
  /** Options that change what they do not name, or run something. */
  readonly acts?: readonly string[];
  /** True for an argument that is a program of its own and changes something. */
  readonly isWritingScript?: (text: string) => boolean;
  /** Finds such programs of their own among the words behind its name, where other words may look like them. */
  readonly listWritingScripts?: (args: readonly ShellWord[]) => readonly ShellWord[];
}

function splitWords(text: string): readonly string[] {
  return text.trim().split(/\s+/u);
}

/** Every argument may name another program to run. */
const RUNS_ANOTHER = new Set(
  splitWords(`
    bunx busybox chronic command doas env eval exec flock ionice nice nohup npx parallel setsid stdbuf sudo
    time timeout uvx watch xargs
  `),
);

const RUNS_CODE = {
  acts: ["-c", "-e", "-p", "-i", "-m", "-r", "--eval", "--print", "--require", "--import"],
} as const;
/** Also what it writes about its own run, into files that it names itself. */
const NODE: WritingOptions = {
  files: splitWords(`
    --redirect-warnings --cpu-prof-dir --cpu-prof-name --heap-prof-dir --heap-prof-name --diagnostic-dir
    --report-directory --report-filename --localstorage-file
  `),
  acts: [
    ...RUNS_CODE.acts,
    ...splitWords(`
      --prof --cpu-prof --heap-prof --heapsnapshot-near-heap-limit --heapsnapshot-signal --report-on-fatalerror
      --report-on-signal --report-uncaught-exception --build-snapshot --trace-event-categories
    `),
  ],
};
const AWK: WritingOptions = {
  acts: ["-i", "-f", "--include", "--file"],
  isWritingScript: (text) => /system\s*\(|\||>/u.test(text),
};
const SED: WritingOptions = { acts: ["-i", "-f", "--in-place", "--file"], listWritingScripts };
const COMPILER: WritingOptions = { files: ["-o"] };

const BY_PROGRAM: Readonly<Record<string, WritingOptions>> = {
  awk: AWK,
  bash: RUNS_CODE,
  cc: COMPILER,
  clang: COMPILER,
  curl: {
    files: splitWords(`
      -o -D -c --output --dump-header --cookie-jar --trace --trace-ascii --stderr --libcurl --hsts --alt-svc
    `),
    acts: splitWords(`
      -O -J -K -T -d -F -X --remote-name --remote-name-all --config --upload-file
    `),
  },
  cargo: { acts: ["--config", "--target-dir"] },
  date: { acts: ["-s", "--set"] },
  dd: { operand: "of=" },
  eslint: { files: ["-o", "--cache-location"], acts: ["--fix", "--cache"] },
  fd: { acts: ["-x", "-X", "--exec", "--exec-batch"] },
  find: {
    files: ["-fprint", "-fprint0", "-fprintf", "-fls"],
    acts: ["-delete", "-exec", "-execdir", "-ok", "-okdir"],
  },
  "g++": COMPILER,
  gawk: AWK,
  gcc: COMPILER,
  git: {
    files: ["-o", "--output"],
    acts: ["-c", "--config-env", "--ext-diff", "--exec-path", "--upload-pack", "--receive-pack", "-x"],
  },
  go: {
    files: ["-o", "-coverprofile", "-cpuprofile", "-memprofile", "-blockprofile", "-trace"],
    acts: ["-exec", "-toolexec"],
  },
  // Only `git grep` has them. In other commands of git that is a letter of what is searched: `git log -STODO`.
  grep: { acts: ["-O", "--open-files-in-pager"] },
  gsed: SED,
  iconv: { files: ["-o", "--output"] },
  jest: { acts: ["-u", "--coverage"] },
  less: { files: ["-o", "-O"], acts: ["-k"] },
  lua: { acts: ["-e", "-l", "-i"] },
  mawk: AWK,
  node: NODE,
  openssl: { files: ["-out", "-keyout"] },
  perl: RUNS_CODE,
  php: {
    acts: ["-r", "-B", "-R", "-E", "-F", "--run", "--process-begin", "--process-code", "--process-end"],
  },
  prettier: { acts: ["-w"] },
  pytest: {
    files: ["--junitxml", "--junit-xml", "--html", "--basetemp", "--resultlog"],
    acts: ["-o", "-p", "--debug", "--pastebin", "--cov", "--cov-report"],
  },
  python: RUNS_CODE,
  python3: RUNS_CODE,
  rg: { acts: ["--pre", "--hostname-bin"] },
  ruby: RUNS_CODE,
  sed: SED,
  sh: RUNS_CODE,
  shuf: { files: ["-o", "--output"] },
  sort: { files: ["-o", "--output"], acts: ["--compress-program"] },
  tar: {
    files: ["--index-file", "--volno-file"],
    acts: splitWords(`
      -I -F --to-command --use-compress-program --checkpoint-action --info-script --new-volume-script
      --rsh-command
    `),
  },
  tree: { files: ["-o"] },
  tsc: {
    files: ["--generateCpuProfile", "--generateTrace", "--declarationDir"],
    acts: ["-b", "-d", "-p", "--build", "--incremental", "--declaration", "--init"],
  },
  vitest: { acts: ["-u", "--coverage"] },
  wget: { files: ["-O", "-o", "-a", "-P"], acts: ["-r", "-m", "-c", "-N", "--mirror", "--post-file"] },
  xmllint: { files: ["-o"] },
  yq: { acts: ["-i", "-s"] },
  zsh: RUNS_CODE,
};

/** Words of an option's name that say that its value is written. */
const NAMES_FILE = new Set(
  splitWords("destination out output outfile outdir outputfile outputdir logfile junitxml tsbuildinfofile"),
);
/** Words of an option's name that say that something is changed. */
const SAYS_CHANGE = new Set(
  splitWords(`
    append clean create delete dump edit exec execute fix force generate inplace install log overwrite
    purge remove save update upgrade write
  `),
);

/**
 * Returns the files that arguments of these shell commands write, of those words that `isOpen` picks, which an
 * operator left open in the command; `hasMore` where they may do more than write these.
 */
export function findArgumentWrites(
  commands: readonly SimpleCommand[],
  isOpen: (word: ShellWord) => boolean,
): ArgumentWrites {
  const outputs: string[] = [];
  const changesFolder = commands.some((words) => words.some(isChangingFolder));
  let hasMore = false;
  for (const words of commands) {
    const programs = collectPrograms(words);
    for (const [index, word] of words.entries()) {
      if (!isOpen(word) || index === 0) continue;
      const argumentWrite = findArgumentWrite(word, words[index + 1], programs);
      if (argumentWrite === undefined) continue;
      if (argumentWrite === "acts" || (changesFolder && !isAbsolute(argumentWrite.file))) hasMore = true;
      else outputs.push(argumentWrite.file);
    }
  }
  return { outputs, hasMore };
}

const FOLDER_OPTIONS = ["--directory", "--chdir", "--work-tree", "--cwd", "--dir", "--prefix", "--root"];

/** True for what makes the rest of the line, or a program, work in another folder: `cd`, `git -C`, `make --directory=x`. */
function isChangingFolder({ text }: ShellWord): boolean {
  if (/^(?:cd|pushd|popd|chdir)(?:[<>].*)?$/su.test(text) || /^-(?:C.*|[a-z]+C)$/su.test(text)) return true;
  const { name } = splitOption(text);
  return isOption(name) && FOLDER_OPTIONS.some((option) => isOptionSpelling(option, name));
}

/** The options and files of the programs that a command calls. */
interface CalledPrograms {
  readonly runsAnother: boolean;
  readonly options: readonly WritingOptions[];
  readonly files: readonly string[];
  readonly acts: readonly string[];
  readonly writingScripts: ReadonlySet<ShellWord>;
}

/**
 * Collects the writing options of every program that one of the words may name. Behind `npx` and its kin, and behind
 * `python -m`, any word may be the program.
 */
function collectPrograms(words: SimpleCommand): CalledPrograms {
  const names = words.map(({ text }) => text.slice(text.lastIndexOf("/") + 1));
  const found = names.map((name) => (Object.hasOwn(BY_PROGRAM, name) ? BY_PROGRAM[name] : undefined));
  const options = [...new Set(found.filter((option) => option !== undefined))];
  const scripting = found.findIndex((option) => option?.listWritingScripts);
  return {
    runsAnother: RUNS_ANOTHER.has(names[0] ?? ""),
    options,
    files: options.flatMap(({ files = [] }) => files),
    acts: options.flatMap(({ acts = [] }) => acts),
    writingScripts: new Set(found[scripting]?.listWritingScripts?.(words.slice(scripting + 1))),
  };
}

type ArgumentWrite = { readonly file: string } | "acts" | undefined;

/**
 * Returns the file that an argument makes a program write, or `acts` where it changes what it does not name;
 * `undefined` where it does neither.
 */
function findArgumentWrite(
  word: ShellWord,
  next: ShellWord | undefined,
  programs: CalledPrograms,
): ArgumentWrite {
  const { text } = word;
  const { runsAnother, options, writingScripts } = programs;
  if (runsAnother || writingScripts.has(word)) return "acts";
  if (options.some(({ isWritingScript }) => isWritingScript?.(text))) return "acts";
  if (word.isExpanded && mayBecomeOption(word)) return "acts";
  if (isOption(text)) return findOptionWrite(word, next, programs);
  const operand = options.find((option) => option.operand !== undefined && text.startsWith(option.operand));
  return operand?.operand === undefined
    ? undefined
    : createFileWrite({ ...word, text: text.slice(operand.operand.length) });
}

function isOption(text: string): boolean {
  return text.startsWith("-") && text !== "-" && text !== "--";
}

function findOptionWrite(
  word: ShellWord,
  next: ShellWord | undefined,
  { files, acts }: CalledPrograms,
): ArgumentWrite {
  const { text } = word;
  const { name, value } = splitOption(text);
  if (isAnyOption(acts, name)) return "acts";
  if (files.some((option) => isOptionSpelling(option, name)) || hasFileWord(name))
    return createFileWrite(value === undefined ? next : { ...word, text: value });
  const isAttached = files.some((option) => option.length === 2 && text.startsWith(option));
  if (isAttached && !name.startsWith("--")) return createFileWrite({ ...word, text: text.slice(2) });
  return isAnyOption(files, name) || hasChangeWord(name) ? "acts" : undefined;
}

/**
 * True where the shell may make an option of it: of `$FLAGS`, of `HEAD${IFS}--output=x`, of `{--output=x,-1}`. `*.ts` becomes one
 * only where a file has the name of one.
 */
function mayBecomeOption({ text, isSplit }: ShellWord): boolean {
  if (isSplit || text.startsWith("$") || text.startsWith("`")) return true;
  if (text.startsWith("{")) return /[{,}][-$`]/u.test(text);
  return isOption(text) && /[$`{]/u.test(splitOption(text).name);
}

function splitOption(text: string): { readonly name: string; readonly value?: string } {
  const at = text.indexOf("=");
  return at === -1 ? { name: text } : { name: text.slice(0, at), value: text.slice(at + 1) };
}

/**
 * True for one of the options, the beginning of a long one (`--outp`), or a dash and letters that include a short one:
 * `-nro` has `-o` in it, and `-i.bak` has `-i`.
 */
function isAnyOption(options: readonly string[], name: string): boolean {
  if (options.some((option) => isOptionSpelling(option, name))) return true;
  const isShort = /^-[^-]/u.test(name);
  return isShort && options.some((option) => option.length === 2 && name.slice(1).includes(option.charAt(1)));
}

/**
 * True where a name may be this option: many programs take the beginning of a long one, as `--outp`. Go's take one
 * dash or two.
 */
function isOptionSpelling(option: string, name: string): boolean {
  if (option === name) return true;
  return name.startsWith("--") && option.replace(/^-+/u, "").startsWith(name.slice(2));
}

function hasFileWord(name: string): boolean {
  return listOptionWords(name).some((word) => NAMES_FILE.has(word));
}

function hasChangeWord(name: string): boolean {
  return listOptionWords(name).some((word) => SAYS_CHANGE.has(word));
}

/** The words of a long option, joined ones too: `--outputFile`, `--in-place`, `-coverprofile`. */
function listOptionWords(name: string): string[] {
  const bare = name.replace(/^-+/u, "");
  if (bare.length < 3) return [];
  const words = bare.split(/[-_.]|(?<=[a-z])(?=[A-Z])/u).map((word) => word.toLowerCase());
  return [...words, words.join("")];
}

/** Puts `./` before a name that begins with `~` or `file:`: here these are names like any others. */
function toLiteralPath(file: string): string {
  return /^(?:~|file:)/u.test(file) ? `./${file}` : file;
}

/**
 * Returns the file that a word names, or `acts` where there is none or the shell expands it; `undefined` for the
 * standard output and `/dev/null`.
 */
function createFileWrite(word: ShellWord | undefined): ArgumentWrite {
  if (!word || word.isExpanded || word.text === "") return "acts";
  // A dash is the standard output, and so is what it is called as a file.
  return word.text === "-" || word.text === "/dev/stdout" || word.text === "/dev/null"
    ? undefined
    : { file: toLiteralPath(word.text) };
}
