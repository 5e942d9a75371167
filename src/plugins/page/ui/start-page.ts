/** Starts the operator's page. */
import "./page.css";
import { TIMELINE_STYLE } from "../drawing/timeline-style.ts";
import "./views/page-root.ts";

const sheet = new CSSStyleSheet();
sheet.replaceSync(TIMELINE_STYLE);
document.adoptedStyleSheets.push(sheet);
