// The timeline at the bottom: phases, events and the displayed time; it and the plots are clicked
// and dragged to seek.
let run = null; // what the server, or the file, tells of the run
let bar = null;
const COLORS = ["#4c8ed9", "#ef7f1a", "#35a15f", "#9a6fd0", "#e05263", "#27a7b0"];
document.head.appendChild(document.createElement("style")).textContent = `
.remora-bar{position:fixed;left:0;bottom:0;height:50px;z-index:4;user-select:none;
  -webkit-user-select:none;touch-action:none;cursor:pointer;font:11.5px system-ui,sans-serif;
  font-variant-numeric:tabular-nums;background:#14171de6;color:#dfe4ec;--event:#ffd34d;--rail:#fff3;--head:#fff}
[data-mantine-color-scheme="light"] .remora-bar{background:#fffffff0;color:#23272e;--event:#b07400;
  --rail:#0002;--head:#111;box-shadow:0 -1px 0 #0002}
.remora-bar>*,.remora-track>*{position:absolute;box-sizing:border-box}
.remora-play{left:8px;top:9px;width:32px;height:32px;border:0;border-radius:6px;background:#8883;
  color:inherit;font-size:13px;line-height:32px;padding:0;cursor:pointer;text-align:center}
.remora-clock{left:48px;top:0;line-height:50px;width:88px;white-space:nowrap}
.remora-track{left:140px;right:16px;top:0;bottom:0}
.remora-rail{left:0;right:0;top:15px;height:4px;border-radius:2px;background:var(--rail)}
.remora-done{left:0;top:15px;height:4px;border-radius:2px;background:#ef7f1a}
.remora-head{top:6px;height:38px;width:2px;margin-left:-1px;background:var(--head);pointer-events:none}
.remora-event{top:5px;height:9px;width:2px;margin-left:-1px;background:var(--event)}
.remora-phase{top:24px;height:18px;border-radius:3px;overflow:hidden;white-space:nowrap;padding:0 6px;
  line-height:18px;font-size:11px;text-overflow:ellipsis}
.remora-hint{bottom:50px;transform:translateX(-50%);background:#14171df2;color:#eef1f5;padding:3px 8px;
  border-radius:4px;white-space:nowrap;pointer-events:none;max-width:60vw;overflow:hidden;
  text-overflow:ellipsis}`;

const percent = (t) => (100 * (t - run.start)) / Math.max(run.end - run.start, 1e-300);
const dragged = (element, left, right, then) => {
  const to = (event) => {
    const box = element.getBoundingClientRect();
    const part = (event.clientX - box.left - left) / Math.max(box.width - left - right, 1);
    if (run) run.seek(run.start + Math.min(Math.max(part, 0), 1) * (run.end - run.start));
  };
  return (event) => {
    const ended = run && run.begin ? run.begin() : null;
    to(event);
    const end = () => {
      window.removeEventListener("pointermove", to);
      window.removeEventListener("pointerup", end);
      window.removeEventListener("pointercancel", end);
      if (ended) ended();
    };
    window.addEventListener("pointermove", to);
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", end);
    event.preventDefault();
    event.stopPropagation();
  };
};
window.addEventListener(
  "pointerdown",
  (event) => {
    const at = (name) => event.target.closest && event.target.closest(`[data-remora-${name}]`);
    const plot = at("plot");
    const line = at("line");
    if (plot) dragged(plot, +plot.dataset.left, +plot.dataset.right)(event);
    if (line) update(line.dataset.picker, line.dataset.remoraLine);
  },
  true,
);

const hinted = (track, hint) => (event) => {
  const box = track.getBoundingClientRect();
  const part = (event.clientX - box.left) / Math.max(box.width, 1);
  hint.hidden = part < 0 || part > 1;
  if (hint.hidden) return;
  const t = run.start + part * (run.end - run.start);
  const near = (4 * (run.end - run.start)) / Math.max(box.width, 1);
  const phase = run.phases.find((p) => p.start <= t && t < p.end);
  const events = run.events.filter((e) => Math.abs(e.t - t) < near).slice(0, 2);
  hint.textContent = [`${t.toFixed(2)} s`, phase && phase.name, ...events.map((e) => e.name)]
    .filter(Boolean)
    .join(" · ");
  const half = 0.5 * hint.offsetWidth;
  const x = Math.min(Math.max(event.clientX, half + 4), window.innerWidth - half - 4);
  hint.style.left = `${x - box.left}px`;
};
const build = () => {
  if (bar) bar.remove();
  bar = made(document.body, "div", "remora-bar");
  const track = made(bar, "div", "remora-track");
  for (const [k, phase] of run.phases.entries()) {
    const span = made(track, "div", "remora-phase", phase.name);
    span.style.left = `${percent(phase.start)}%`;
    span.style.width = `calc(${percent(phase.end) - percent(phase.start)}% - 2px)`;
    span.style.background = `${COLORS[k % COLORS.length]}99`;
  }
  made(track, "div", "remora-rail");
  bar.done = made(track, "div", "remora-done");
  for (const event of run.events) {
    const mark = made(track, "div", "remora-event");
    mark.style.left = `${percent(event.t)}%`;
    mark.style.opacity = run.events.length > 40 ? 0.45 : 1;
  }
  bar.head = made(track, "div", "remora-head");
  bar.clock = made(bar, "div", "remora-clock");
  bar.play = made(bar, "button", "remora-play");
  bar.play.title = "play or pause";
  bar.play.addEventListener("pointerdown", (event) => event.stopPropagation());
  bar.play.addEventListener("click", () => run.toggle());
  const hint = made(track, "div", "remora-hint");
  hint.hidden = true;
  bar.addEventListener("pointermove", hinted(track, hint));
  bar.addEventListener("pointerleave", () => (hint.hidden = true));
  bar.addEventListener("pointerdown", dragged(track, 0, 0));
};
const showTime = () => {
  const source = told("run");
  if (!source || (told("now") === null && !told("film"))) {
    if (bar) bar.remove();
    bar = run = null;
    return;
  }
  if (!bar || bar.source !== source) {
    run = JSON.parse(source);
    run.seek = (t) => update(run.slider, t);
    run.toggle = () => update(run.button, true);
    run.now = () => +told("now");
    run.playing = () => told("playing") === "1";
    if (told("film")) takeFilm();
    build();
    if (told("film")) addScenes();
    bar.source = source;
  }
  const { canvas } = viser();
  const box = canvas && canvas.getBoundingClientRect();
  if (box) bar.style.left = `${box.left}px`;
  if (box) bar.style.width = `${box.width}px`;
  const t = Math.min(Math.max(run.now(), run.start), run.end);
  bar.done.style.width = bar.head.style.left = `${percent(t)}%`;
  bar.clock.textContent = `t = ${t.toFixed(2)} s`;
  const face = run.playing() ? "❚❚" : "▶";
  if (bar.play.textContent !== face) bar.play.textContent = face;
};
