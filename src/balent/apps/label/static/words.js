// Numbers, times and people in words.

const NUMBER = new Intl.NumberFormat("en");
const AGO = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS = [["day", 86400], ["hour", 3600], ["minute", 60]];

export const count = (n) => NUMBER.format(n);

export const counted = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** A share that is not quite all is not called all. */
export const percent = (share) => (share > 0.995 && share < 1 ? "> 99 %" : `${Math.round(100 * share)} %`);

export const range = ({ low, high }) => `${Math.round(100 * low)}–${Math.round(100 * high)} %`;

export const capital = (sentence) => sentence.charAt(0).toUpperCase() + sentence.slice(1);

export const person = (who) => who || "somebody";

export function ago(when) {
  const seconds = (Date.now() - new Date(when)) / 1000;
  const step = STEPS.find(([, length]) => seconds >= length);
  return step ? AGO.format(-Math.floor(seconds / step[1]), step[0]) : "just now";
}

/** Cohen's kappa in a word (Altman, 1991). */
export function kappaWord(kappa) {
  return ["poor", "fair", "moderate", "good", "very good"][Math.max(0, Math.min(4, Math.ceil(5 * kappa) - 1))];
}
