/** Owns: colours and signs, by meaning; plain text where the terminal wants none. */
import { styleText } from "node:util";
import type { CoordinationStatus } from "../../../agents/coordination/contracts/coordination-summary.ts";
import type { Lane } from "../../../agents/coordination/contracts/envelope.ts";
import type { StepView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { Terminal } from "./cli-host.ts";

/** A style of text on a terminal. */
type TextStyle = Parameters<typeof styleText>[0];
type StepStatus = StepView["status"];

const TONES = {
  plain: "reset",
  strong: "bold",
  faint: "dim",
  good: "green",
  bad: ["red", "bold"],
  alarm: ["bold", "white", "bgRed"],
  warning: "yellow",
} as const satisfies Record<string, TextStyle>;

export type Tone = keyof typeof TONES;

const LANE_STYLES: Readonly<Record<Lane, TextStyle>> = {
  control: "magenta",
  data: "cyan",
  escalation: "yellow",
};

/** The sign and style of a status. */
interface StatusLook {
  readonly sign: string;
  readonly ascii: string;
  readonly style: TextStyle;
}

/** The signs are one cell wide in every terminal font; emoji are not. */
const STEP_LOOKS: Readonly<Record<StepStatus, StatusLook>> = {
  waiting: { sign: "○", ascii: ".", style: "dim" },
  dispatched: { sign: "◌", ascii: ":", style: "blue" },
  running: { sign: "●", ascii: ">", style: "blueBright" },
  completed: { sign: "✓", ascii: "+", style: "green" },
  failed: { sign: "✗", ascii: "x", style: ["red", "bold"] },
  timed_out: { sign: "◷", ascii: "!", style: ["redBright"] },
  cancelled: { sign: "⊘", ascii: "-", style: "gray" },
  backoff: { sign: "↻", ascii: "@", style: "yellow" },
  held: { sign: "◈", ascii: "=", style: ["yellowBright"] },
  blocked: { sign: "◆", ascii: "?", style: ["yellowBright", "bold"] },
  skipped: { sign: "⊖", ascii: "/", style: "dim" },
};

const COORDINATION_LOOKS: Readonly<Record<CoordinationStatus, StatusLook>> = {
  running: STEP_LOOKS.running,
  success: STEP_LOOKS.completed,
  partial: { sign: "◐", ascii: "%", style: "yellow" },
  failed: STEP_LOOKS.failed,
  escalated: { sign: "▲", ascii: "!", style: "yellowBright" },
  cancelled: STEP_LOOKS.cancelled,
};

const LOOKS: Readonly<Record<StepStatus | CoordinationStatus, StatusLook>> = {
  ...COORDINATION_LOOKS,
  ...STEP_LOOKS,
};

export interface Paint {
  tone(tone: Tone, text: string): string;
  lane(lane: Lane, text: string): string;
  /** The sign of a step's status. */
  stepSign(status: StepStatus): string;
  stepStatus(status: StepStatus, text: string): string;
  /** The sign of a step's status or of a coordination's: what both may be looks alike. */
  sign(status: StepStatus | CoordinationStatus): string;
  /** Sign and word. */
  coordinationStatus(status: CoordinationStatus): string;
}

/** Creates what colours texts and chooses signs for statuses, without colour or Unicode where the terminal has none. */
export function createPaint({ colour, unicode }: Terminal): Paint {
  const paint = (style: TextStyle, text: string): string =>
    colour && text !== "" ? styleText(style, text, { validateStream: false }) : text;
  const sign = (look: StatusLook): string => (unicode ? look.sign : look.ascii);
  return {
    tone: (tone, text) => (tone === "plain" ? text : paint(TONES[tone], text)),
    lane: (lane, text) => paint(LANE_STYLES[lane], text),
    stepSign: (status) => paint(STEP_LOOKS[status].style, sign(STEP_LOOKS[status])),
    stepStatus: (status, text) => paint(STEP_LOOKS[status].style, text),
    sign: (status) => paint(LOOKS[status].style, sign(LOOKS[status])),
    coordinationStatus: (status) => {
      const look = COORDINATION_LOOKS[status];
      return paint(look.style, `${sign(look)} ${status}`);
    },
  };
}
