/** Owns: what somebody may do on the page: what is said before, and what does it. */
import type { TemplateResult } from "lit";
import type { ActionResult } from "../../contract/actions.ts";

export type Action = OfferedAction | RefusedAction;

export interface OfferedAction {
  readonly title: string;
  /** The effect, in words, before it happens. */
  readonly before: string;
  readonly isRefused?: false;
  /** On the button that does it. */
  readonly confirm: string;
  readonly isDangerous?: boolean;
  /** Asks for a text, which `perform` is given. */
  readonly field?: { readonly label: string; readonly isRequired: boolean };
  readonly details?: () => TemplateResult;
  /** @throws ApiProblem */
  perform(text: string): Promise<ActionOutcome>;
  /** Called after it was done, also where the dialog was closed before. */
  onDone?(): void;
}

export interface ActionOutcome extends ActionResult {
  /** The address of what the action began. The page goes there, unless the dialog was closed meanwhile. */
  readonly address?: string;
}

interface RefusedAction {
  readonly title: string;
  /** Why it is not allowed. */
  readonly before: string;
  readonly isRefused: true;
}

/** How an action ended whose dialog was closed before. */
export interface LateOutcome {
  /** `false` where it was refused, or nobody knows whether it was done. */
  readonly isDone: boolean;
  readonly sentence: string;
  /** The address of what the action began. */
  readonly address?: string | undefined;
}
