// What viser does not do: overlays are drawn through bodies, a timeline spans the bottom, and
// plots are clicked and dragged to seek.
(() => {
  "use strict";
  const OVERLAY = "/world/overlay/";
  const viser = () => window.__viserMutable;

  // Overlays ------------------------------------------------------------------------------------
  const through = (object) => {
    const materials = Array.isArray(object.material) ? object.material : [object.material];
    for (const material of materials) {
      if (!material || material.depthTest === false) continue;
      material.depthTest = false;
      material.transparent = true;
      material.needsUpdate = true;
    }
    object.renderOrder = 900;
  };
  const drawThrough = () => {
    const nodes = viser().nodeRefFromName;
    for (const name in nodes) {
      if (nodes[name] && name.startsWith(OVERLAY)) {
        nodes[name].traverse((object) => object.material && through(object));
      }
    }
  };

  // Time ----------------------------------------------------------------------------------------
  let told = null; // what the server tells of the run
  let bar = null;
  const seek = (part) => {
    if (!told) return;
    const s = Math.min(Math.max(part, 0), 1);
    const value = told.start + s * (told.end - told.start);
    viser().sendMessage({ type: "GuiUpdateMessage", uuid: told.slider, updates: { value } });
  };
  const dragged = (element, left, right) => {
    const to = (event) => {
      const box = element.getBoundingClientRect();
      seek((event.clientX - box.left - left) / Math.max(box.width - left - right, 1));
    };
    return (event) => {
      to(event);
      const end = () => {
        window.removeEventListener("pointermove", to);
        window.removeEventListener("pointerup", end);
        window.removeEventListener("pointercancel", end);
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
      const plot = event.target.closest && event.target.closest("[data-remora-plot]");
      if (plot) dragged(plot, +plot.dataset.left, +plot.dataset.right)(event);
    },
    true,
  );
  const made = (parent, style, text) => {
    const element = document.createElement("div");
    element.style.cssText = style;
    if (text) element.textContent = text;
    parent.appendChild(element);
    return element;
  };
  const percent = (t) => (100 * (t - told.start)) / Math.max(told.end - told.start, 1e-300);
  const COLORS = ["#4c8ed9", "#ef7f1a", "#35a15f", "#9a6fd0", "#e05263", "#27a7b0"];
  const build = () => {
    if (bar) bar.remove();
    bar = made(document.body, "position:fixed;left:0;bottom:0;height:46px;z-index:4;user-select:none;" +
      "touch-action:none;cursor:pointer;font:11.5px system-ui,sans-serif;background:#14171dd9;color:#dfe4ec");
    const track = made(bar, "position:absolute;left:92px;right:16px;top:0;bottom:0");
    for (const [k, phase] of told.phases.entries()) {
      const span = made(track, `position:absolute;top:22px;height:14px;border-radius:3px;overflow:hidden;` +
        `white-space:nowrap;padding:0 5px;box-sizing:border-box;line-height:14px;font-size:10.5px;` +
        `left:${percent(phase.start)}%;width:calc(${percent(phase.end) - percent(phase.start)}% - 2px);` +
        `background:${COLORS[k % COLORS.length]}88`, phase.name);
      span.title = `${phase.name}: ${phase.start.toFixed(2)} to ${phase.end.toFixed(2)} s`;
    }
    for (const event of told.events) {
      const mark = made(track, `position:absolute;top:4px;height:32px;width:2px;margin-left:-1px;` +
        `background:#ffd34d;left:${percent(event.t)}%`);
      mark.title = `${event.name}: ${event.t.toFixed(3)} s`;
    }
    made(track, "position:absolute;left:0;right:0;top:12px;height:4px;border-radius:2px;background:#fff3");
    bar.done = made(track, "position:absolute;left:0;top:12px;height:4px;border-radius:2px;background:#ef7f1a");
    bar.head = made(track, "position:absolute;top:4px;height:32px;width:2px;margin-left:-1px;background:#fff");
    bar.clock = made(bar, "position:absolute;left:12px;top:0;line-height:46px;width:76px;" +
      "font-variant-numeric:tabular-nums;white-space:nowrap");
    bar.addEventListener("pointerdown", dragged(track, 0, 0));
  };
  const showTime = () => {
    const source = document.querySelector("[data-remora-run]");
    const now = document.querySelector("[data-remora-now]");
    if (!source || !now) {
      if (bar) bar.remove();
      bar = told = null;
      return;
    }
    if (!bar || bar.source !== source.dataset.remoraRun) {
      told = JSON.parse(source.dataset.remoraRun);
      build();
      bar.source = source.dataset.remoraRun;
    }
    const canvas = viser() && viser().canvas;
    const box = canvas && canvas.getBoundingClientRect();
    if (box) bar.style.cssText = bar.style.cssText.replace(/left:[^;]*;/, `left:${box.left}px;`);
    if (box) bar.style.width = `${box.width}px`;
    const t = +now.dataset.remoraNow;
    bar.done.style.width = bar.head.style.left = `${percent(t)}%`;
    bar.clock.textContent = `t = ${t.toFixed(2)} s`;
  };

  let last = 0;
  const tick = (now) => {
    if (viser()) {
      showTime();
      if (now - last > 250) {
        last = now;
        drawThrough();
      }
    }
    setTimeout(() => requestAnimationFrame(tick), 30);
  };
  requestAnimationFrame(tick);
})();
