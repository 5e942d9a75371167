/** Owns: starting the operator's page in the browser, with its style sheets. */
import "./page.css";
import { TIMELINE_STYLE } from "../drawing/timeline-style.ts";
import "./views/page-root.ts";

const sheet = new CSSStyleSheet();
sheet.replaceSync(TIMELINE_STYLE);
document.adoptedStyleSheets.push(sheet);
