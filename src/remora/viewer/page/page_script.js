// What viser does not do: overlays are drawn through bodies, the camera steps back in a narrow
// window, and what the other scripts do is repeated here. All scripts share one scope.
const OVERLAY = "/world/overlay/";
//: Width of the picture relative to its height that cameras are placed for (`scene/camera.py`).
const ASPECT = 1.1;
const viser = () => window.__viserMutable;
const told = (name) => {
  const element = document.querySelector(`[data-remora-${name}]`);
  return element && element.getAttribute(`data-remora-${name}`);
};
const made = (parent, kind, style, text) => {
  const element = document.createElement(kind);
  element.className = style;
  if (text) element.textContent = text;
  parent.appendChild(element);
  return element;
};
const update = (uuid, value) =>
  viser().sendMessage({ type: "GuiUpdateMessage", uuid, updates: { value } });

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

let framedAt = 0; // when the robot was first there; -1: done
const stepBack = (now) => {
  const { nodeRefFromName, canvas, cameraControl } = viser();
  if (framedAt < 0 || !nodeRefFromName["/world"] || !canvas || !cameraControl) return;
  framedAt = framedAt || now;
  if (now - framedAt < 600) return;
  const aspect = canvas.clientWidth / Math.max(canvas.clientHeight, 1);
  if (aspect < ASPECT) cameraControl.dollyTo((1.06 * cameraControl.distance * ASPECT) / aspect, false);
  framedAt = -1;
};

let last = 0;
const tick = (now) => {
  if (viser()) {
    showTime();
    fillSliders();
    stepBack(now);
    if (now - last > 250) {
      last = now;
      drawThrough();
      showUnits();
    }
  }
  setTimeout(() => requestAnimationFrame(tick), 30);
};
requestAnimationFrame(tick);
